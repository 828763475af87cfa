import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { readyAsset } from '#test/support/assets.ts';
import { composedWorld, refused, tomorrow } from '#test/support/composing.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester, composed } = await composedWorld(['x', 'bluesky']);
const upper = (id: unknown): string => String(id).toUpperCase();

suite('ids in upper case', (t) => {
  t('name the same resource in a path and in a query', async () => {
    const { clientId, accounts } = composed;
    assert.equal((await tester.get(`/clients/${upper(clientId)}`)).data.id, clientId);
    assert.equal((await tester.get(`/accounts/${upper(accounts.x)}`)).data.id, accounts.x);
    const renamed = await tester.patch(`/clients/${upper(clientId)}`, { name: 'Renamed' });
    assert.equal(renamed.data.id, clientId);
    const listed = await tester.get(`/accounts?clientId=${upper(clientId)}`);
    assert.deepEqual(listed.rows.map(({ id }) => id).sort(), Object.values(accounts).sort());
    refused(await tester.get(`/clients/${upper(randomUUID())}`), 404, 'not_found');
    const endpoint = await tester.post('/webhooks', { url: 'https://hooks.example/in', events: ['*'] });
    const nowhere = `/webhooks/${upper(endpoint.data.id)}/deliveries/${upper(randomUUID())}`;
    refused(await tester.get(nowhere), 404, 'not_found');
    assert.equal((await tester.delete(`/webhooks/${upper(endpoint.data.id)}`)).status, 200);
  });

  t('continue a list whose filter was sent in lower case', async () => {
    const first = await tester.get(`/accounts?limit=1&clientId=${composed.clientId}`);
    const cursor = first.body.page?.nextCursor ?? '';
    const next = await tester.get(`/accounts?limit=1&clientId=${upper(composed.clientId)}&cursor=${cursor}`);
    assert.equal(next.status, 200, next.text);
    assert.notEqual(next.rows[0]?.id, first.rows[0]?.id);
  });

  t('are stored and answered in lower case, wherever a body has them', async () => {
    const { id: mediaId } = await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image');
    await world.settled();
    const key = randomUUID();
    const scheduledAt = tomorrow();
    const sent = (write: (id: string) => string) => {
      const { clientId, accounts } = composed;
      const account = accounts.x ?? '';
      return composed.body({
        clientId: write(clientId),
        targets: { mode: 'selection', accountIds: [write(account), account] },
        mediaIds: [write(mediaId)],
        variants: [{ platform: 'x', mediaIdsOverride: [write(mediaId)] }],
        mediaAltTexts: { [write(mediaId)]: 'A table' },
        coverMediaId: write(mediaId),
        schedule: { type: 'at', scheduledAt },
      });
    };
    const made = await tester.post('/posts', sent(upper), { key });
    assert.equal(made.status, 200, made.text);
    const { clientId, mediaIds, mediaAltTexts, coverMediaId, targetSelection, targets } = made.data;
    assert.deepEqual(
      { clientId, mediaIds, mediaAltTexts, coverMediaId, targets: (targets as readonly unknown[]).length },
      {
        clientId: composed.clientId,
        mediaIds: [mediaId],
        mediaAltTexts: { [mediaId]: 'A table' },
        coverMediaId: mediaId,
        targets: 1,
      },
    );
    const account = composed.accounts.x;
    assert.deepEqual((targetSelection as { readonly accountIds: unknown }).accountIds, [account, account]);
    assert.ok(!/[A-F][0-9a-f]{3}-/.test(JSON.stringify(made.data)), made.text);
    const again = await tester.post('/posts', sent(String), { key });
    assert.equal(again.headers.get('idempotent-replayed'), 'true', 'the same request, written otherwise');
  });

  t('a map with one id twice, in upper and in lower case, is refused', async () => {
    const id = 'abcdef00-0000-4000-8000-000000000000';
    const twice = { [id]: 'one', [upper(id)]: 'other' };
    refused(await tester.post('/posts', composed.body({ mediaAltTexts: twice })), 422, 'validation_failed', [
      '/mediaAltTexts',
    ]);
  });
});
