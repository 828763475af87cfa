import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { report } from '#domain/report.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { ReportDefinition } from '#schemas/report.ts';
import { operations } from '#services/api/operations.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld, composer } from '#test/support/composing.ts';
import type { Answered } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';
import { presignBody, uploaded } from '#test/support/uploads.ts';

/** OWASP API3: members that a caller may not set are stored by no write operation and shown in no answer. */

const { world, tester } = await composedWorld(['x']);
const own = await composer(world, ['x', 'bluesky']);
const foreign = randomUUID();
const instant = '1999-01-02T03:04:05.678Z';
const poison = {
  ...{ id: foreign, tenantId: foreign, workspaceId: foreign, liveWorkspaceId: foreign, memberId: foreign },
  ...{ createdBy: { type: 'member', id: foreign }, decidedBy: { type: 'member', id: foreign }, approvalId: foreign },
  ...{ createdAt: instant, updatedAt: instant, publishedAt: instant, archivedAt: instant, decidedAt: instant },
  ...{ status: 'published', role: 'owner', mode: 'live', scopes: ['events.read'], revision: 987_654 },
  ...{
    secret: `whsec_${foreign}`,
    object: 'poison',
    externalId: foreign,
    permalink: `https://evil.example/${foreign}`,
  },
};
const traces = [foreign, instant.slice(0, 23), '987654'];

type Send = () => Promise<Answered>;

suite('OWASP API3: properties', (t) => {
  const savedReport = async (): Promise<string> => {
    const reportId = randomUUID();
    const definition: ReportDefinition = {
      ...{ name: 'Figures', kind: 'workspace', window: 'last_7_days', formats: ['csv'], schedule: null },
      filters: { clientId: null, socialAccountId: null, platform: null },
    };
    const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
    await execute(world.store, report, reportId, { type: 'Define', definition }, context);
    return reportId;
  };
  const calls = async (): Promise<Readonly<Record<string, Send>>> => {
    const made = async (path: string, body: object): Promise<string> => {
      const answer = await tester.post(path, body);
      assert.equal(answer.status, 200, answer.text);
      return String(answer.data.id ?? answer.data.linkId);
    };
    const post =
      (path: string, body: object = {}) =>
      () =>
        tester.post(path, { ...body, ...poison });
    const send =
      (method: string, path: string, body: object = {}) =>
      () =>
        tester.request(method, path, { body: { ...body, ...poison } });
    const client = await made('/clients', { name: 'Poisoned', type: 'brand' });
    const leaving = await composer(world, ['x']);
    const posts = await Promise.all([1, 2, 3].map(() => tester.post('/posts', own.body())));
    const target = (at: number): string => {
      const targets = (posts[at]?.data.targets ?? []) as readonly { readonly id: string }[];
      return targets[0]?.id ?? '';
    };
    const [draft, another] = [
      await made('/posts', own.body({ saveDraft: true })),
      await made('/posts', own.body({ saveDraft: true })),
    ];
    await tester.patch(`/clients/${own.clientId}`, { approvalRequired: true });
    const held = await Promise.all([1, 2, 3, 4].map(() => tester.post('/posts', own.body())));
    await tester.patch(`/clients/${own.clientId}`, { approvalRequired: false });
    const approval = (at: number): string => `/approvals/${held[at]?.data.approvalId}`;
    const campaign = await made('/campaigns', { name: 'Poisoned', clientId: own.clientId });
    const hook = { url: 'https://hooks.agency.example/in', events: ['post.*'] };
    const webhook = await made('/webhooks', hook);
    const upload = (await uploaded(tester)).data.assetId;
    const reportId = await savedReport();
    const [id, revised] = [posts[0]?.data.id, posts[1]?.data.id];
    const { clientId: _client, ...replacement } = own.body();
    const clock = (await tester.get('/sandbox/clock')).data as unknown as { readonly now: string };
    const to = new Date(Date.parse(clock.now) + 1_000).toISOString();
    return {
      moveSandboxClock: post('/sandbox/clock', { to }),
      createClient: post('/clients', { name: 'Poison', type: 'brand' }),
      updateClient: send('PATCH', `/clients/${client}`, { type: 'influencer' }),
      createConnectInvite: post(`/clients/${client}/connect-invites`, { platforms: ['x'] }),
      disconnectAccount: post(`/accounts/${leaving.accounts.x}/disconnect`),
      confirmRestoredAccount: post(`/accounts/${leaving.accounts.x}/confirm-restored`),
      runReport: post(`/reports/${reportId}/runs`),
      createPost: post('/posts', own.body()),
      bulkCreatePosts: () => tester.post('/posts/bulk', { posts: [{ ...own.body(), ...poison }], ...poison }),
      previewPost: post('/posts/preview', own.body()),
      updatePost: send('PATCH', `/posts/${draft}`, replacement),
      publishPost: post(`/posts/${another}/publish`),
      revisePost: post(`/posts/${revised}/revise`, { content: 'Revised.' }),
      setPostRecycle: send('PUT', `/posts/${id}/recycle`, { everyDays: 7, times: 2 }),
      bulkPostTargets: post('/post-targets/bulk', { action: 'reschedule', targetIds: [target(0)], shiftMinutes: 5 }),
      reschedulePostTarget: post(`/post-targets/${target(1)}/reschedule`, { shiftMinutes: 5 }),
      cancelPostTarget: post(`/post-targets/${target(2)}/cancel`),
      approveApproval: post(`${approval(0)}/approve`),
      rejectApproval: post(`${approval(1)}/reject`, { comment: 'No.' }),
      requestApprovalChanges: post(`${approval(2)}/request-changes`, { comment: 'Shorter.' }),
      createApprovalLink: post(`${approval(3)}/links`),
      createCampaign: post('/campaigns', { name: 'Poison' }),
      updateCampaign: send('PATCH', `/campaigns/${campaign}`, { name: 'Renamed' }),
      assignCampaignPosts: post(`/campaigns/${campaign}/assign`, { postIds: [id] }),
      unassignCampaignPosts: post(`/campaigns/${campaign}/unassign`, { postIds: [id] }),
      shiftCampaign: post(`/campaigns/${campaign}/shift`, { days: 1 }),
      createSimulation: post('/simulations', { clientId: own.clientId, cadence: [{ perDay: 3 }] }),
      presignMedia: post('/media/presign', presignBody()),
      registerMedia: post('/media', { assetId: upload }),
      importMedia: post('/media/import-url', { url: 'https://cdn.agency.example/a.jpg' }),
      registerWebhook: post('/webhooks', hook),
      updateWebhook: send('PATCH', `/webhooks/${webhook}`, { description: 'Changed' }),
      testWebhook: post(`/webhooks/${webhook}/test`),
      rotateWebhookSecret: post(`/webhooks/${webhook}/rotate-secret`),
      replayWebhook: post(`/webhooks/${webhook}/replays`, { from: '2026-01-31T08:00:00Z' }),
    };
  };
  /** Need what no network or sender of this world leaves: a failed target, a settled delivery, a session. */
  const elsewhere = [
    ...['retryPostTarget', 'resendWebhookDelivery', 'refreshAnalytics'],
    // They take a role, a mode or scopes from their caller: test/services/api/console.test.ts asks them.
    ...['createApiKey', 'rotateApiKey', 'changeMemberRole', 'createTeamInvite'],
  ];

  t('mass assignment: no write operation stores or shows a member that is not its own', async () => {
    const prepared = await calls();
    const writing = operations.filter(({ method, scope }) => ['POST', 'PUT', 'PATCH'].includes(method) && scope);
    const asked = [...Object.keys(prepared), ...elsewhere].sort();
    assert.deepEqual(asked, writing.map(({ id }) => id).sort());
    await world.settled();
    for (const [id, send] of Object.entries(prepared)) {
      const { status, text, data } = await send();
      assert.ok(status === 200 || status === 422, `${id}: ${text}`);
      if (status === 422) continue;
      for (const trace of traces) assert.ok(!text.includes(trace), `${id} shows ${trace}: ${text}`);
      assert.ok(!/"(status|mode|role|object)":"(published|live|owner|poison)"/.test(text), `${id}: ${text}`);
      assert.notEqual(data.revision, poison.revision, id);
    }
    await world.settled();
    const { rows: events } = await world.pool.query(
      "select string_agg(stream || convert_from(data, 'utf8') || convert_from(metadata, 'utf8'), ' ') as text from es.events",
    );
    const { rows: tables } = await world.pool.query(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_schema not in ('pg_catalog', 'information_schema', 'es') and table_type = 'BASE TABLE'`,
    );
    const stored = [['the store', String(events[0].text)]];
    for (const { name } of tables) {
      const { rows } = await world.pool.query(`select string_agg(t::text, ' ') as text from ${name} t`);
      stored.push([name, String(rows[0].text ?? '')]);
    }
    assert.ok(stored.length > 8);
    for (const [where, text] of stored) {
      for (const trace of [foreign, instant]) assert.ok(!text?.includes(trace), `${where} holds ${trace}`);
    }
  });

  t('no read shows an e-mail address, a token or a secret', async () => {
    const email = `guest-${foreign}@client.example`;
    const body = { platforms: ['x'], recipientEmail: email };
    const invite = await tester.post(`/clients/${own.clientId}/connect-invites`, body);
    assert.equal(invite.status, 200, invite.text);
    const hidden = [String(invite.data.url).split('/').at(-1) ?? '', email, world.testKey.secret, world.liveKey.secret];
    await world.settled();
    const reads = operations.filter(
      ({ method, path, scope }) => method === 'GET' && scope !== null && !path.includes('{'),
    );
    let shown = 0;
    for (const { path, id } of reads) {
      const { text, status } = await tester.get(path);
      if (status === 200) shown += 1;
      for (const one of hidden) assert.ok(!text.includes(one), `${id} shows ${one}`);
      assert.ok(!/"(secret|password|hash|accessToken|refreshToken|credentials|email|recipientEmail)":/.test(text), id);
    }
    assert.ok(shown > 10, String(shown));
  });
});
