/** A whole service and a receiver of webhooks: a post that its network looks at before it shows it. */
import assert from 'node:assert/strict';
import { startReceiver } from '#services/standalone/receiver.ts';
import { callerOf } from '#test/support/http.ts';
import { dataFolder, preparedDatabase } from '#test/support/postgres.ts';
import { printedUrl, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';

suite('a post that its network looks at', { timeoutMs: 120_000 }, (t) => {
  t('is processing, reported to the receiver, and published with its first comment', async () => {
    const receiver = await startReceiver();
    const { dataDir } = dataFolder();
    const service = await start('services/standalone/main.ts', {
      args: ['--data', dataDir, '--port', '0', '--no-tour'],
      env: {
        DATABASE_URL: (await preparedDatabase()).url,
        PRIVATE_TARGETS: receiver.host,
        // The test polls.
        ...{ RATE_LIMIT_PER_MINUTE: '6000', RATE_LIMIT_BURST: '1000' },
      },
      readyAt: /^Data: /m,
    });
    try {
      const base = printedUrl(service.output());
      const caller = callerOf(() => base, /sk_test_\S+/.exec(service.output())?.[0] ?? '');
      const events = ['target.publishing', 'target.processing', 'target.published', 'target.outcome_unknown'];
      const endpoint = await caller.post('/webhooks', { url: `http://${receiver.host}/events`, events });
      receiver.expect(String(endpoint.data.secret));
      const { id: clientId } = (await caller.post('/clients', { name: 'Films', type: 'brand' })).data;
      const invite = await caller.post(`/clients/${clientId}/connect-invites`, { platforms: ['facebook'] });
      const guest = new URLSearchParams({ platform: 'facebook', username: 'acme', timezone: '' });
      const joined = await fetch(String(invite.data.url), { method: 'POST', body: guest, redirect: 'manual' });
      assert.equal(joined.status, 303, await joined.text());
      const [account] = await until(
        'the account',
        async () => {
          const { rows } = await caller.get(`/accounts?clientId=${clientId}`);
          return rows.length === 1 ? rows : null;
        },
        sparing,
      );
      const post = await caller.post('/posts', {
        ...{ clientId, content: 'A film [[sandbox:processing 3s]]', schedule: { type: 'now' } },
        targets: { mode: 'accounts', accountIds: [account?.id] },
        variants: [{ platform: 'facebook', overrides: { firstComment: 'Watch it.' } }],
      });
      assert.equal(post.status, 200, post.text);
      const [{ id = '' } = {}] = post.data.targets as { id: string }[];
      const becomes = (status: string) =>
        until(`the target is ${status}`, async () => {
          const { data } = await caller.get(`/post-targets/${id}`);
          return data.status === status ? data : null;
        });
      const looked = await becomes('processing');
      assert.equal((await caller.get(`/posts/${post.data.id}`)).data.status, 'publishing');
      assert.equal((await caller.post(`/post-targets/${id}/cancel`)).body.code, 'target_not_pending');
      const shown = await becomes('published');
      assert.ok(Date.parse(String(shown.publishedAt)) < Date.parse(String(looked.processingUntil)));
      await until('the first comment is there', async () => {
        const { data } = await caller.get(`/post-targets/${id}`);
        return data.firstCommentExternalId !== null;
      });
      const reported = () => receiver.received.filter(({ data }) => data.targetId === id);
      await until('the receiver knows it', () => reported().length === 3);
      // Deliveries have no order between them.
      assert.deepEqual(
        reported()
          .map(({ type, standard, service: own }) => [type, standard, own])
          .sort(),
        ['target.processing', 'target.published', 'target.publishing'].map((type) => [type, true, true]),
      );
      const reportOf = (type: string) => reported().find((one) => one.type === type)?.data;
      assert.equal(reportOf('target.processing')?.processingUntil, looked.processingUntil);
      assert.equal(reportOf('target.published')?.settledBy, 'reconcile');
    } finally {
      await service.stop();
      await receiver.close();
    }
  });
});
