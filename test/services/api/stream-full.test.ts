import assert from 'node:assert/strict';
import { testTwinIdOf } from '#domain/ids.ts';
import { maxOptionalEvents } from '#runtime/eventing/stream-room.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld, refused, tomorrow } from '#test/support/composing.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester, composed: one } = await composedWorld(['x']);

suite('streams at their limit of changes', (t) => {
  /** Appends the same event until the stream has so many, and waits for the read models. */
  const fill = async (stream: string, event: { type: string; data: unknown }, upTo: number, partitionKey = stream) => {
    let { length } = await world.store.readStream(stream);
    while (length < upTo) {
      const some = Array.from({ length: Math.min(200, upTo - length) }, () => event);
      const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
      await world.store.append(stream, length - 1, some, context, partitionKey);
      length += some.length;
    }
    await world.settled();
  };

  t(
    'an endpoint: a repeat of an accepted call gets its answer, and the endpoint can be turned off and deleted',
    async () => {
      const { data } = await tester.post('/webhooks', { url: 'https://hooks.agency.example/in', events: ['post.*'] });
      const path = `/webhooks/${data.id}`;
      const tested = { type: 'WebhookTestRequested', data: { eventType: 'webhook.test' } };
      await fill(`webhook-${data.id}`, tested, maxOptionalEvents - 1);
      const last = await tester.post(`${path}/test`, {}, { key: 'last' });
      assert.equal(last.status, 200, last.text);
      const before = await world.head();
      for (const key of ['new', 'new', 'newer'])
        refused(await tester.post(`${path}/test`, {}, { key }), 409, 'stream_full');
      const replay = { from: new Date(Date.now() - 3_600_000).toISOString() };
      refused(await tester.post(`${path}/replays`, replay), 409, 'stream_full');
      refused(await tester.patch(path, { description: 'mine' }), 409, 'stream_full');
      refused(await tester.patch(path, { active: false, description: 'mine' }), 409, 'stream_full');
      assert.equal(await world.head(), before, 'a refused call stored events');
      const again = await tester.post(`${path}/test`, {}, { key: 'last' });
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      assert.deepEqual(again.data, last.data);
      assert.equal((await tester.patch(path, { events: ['post.*'] })).status, 200, 'nothing changes');
      const stranger = await world.agency('Stranger');
      refused(await stranger.tester.post(`${path}/test`, {}), 404, 'not_found');
      assert.equal((await tester.post(`${path}/rotate-secret`, {})).status, 200);
      assert.equal((await tester.patch(path, { active: false })).data.active, false);
      refused(await tester.patch(path, { active: true }), 409, 'stream_full');
      assert.equal((await tester.delete(path)).status, 200);
      const page = await tester.get('/errors/stream_full');
      assert.match(page.text, /Create a new one/);
    },
  );

  t('a draft: a new post can take its content, and it can be published', async () => {
    const drafted = await tester.post('/posts', one.body({ saveDraft: true }));
    const { id } = drafted.data;
    const [first] = await world.store.readStream(`post-${id}`);
    const body = (content: string) => ({ ...(first?.data.body as object), content });
    await fill(`post-${id}`, { type: 'DraftReplaced', data: { body: body('again') } }, maxOptionalEvents, id);
    const { clientId: _client, ...changed } = one.body({ content: 'anew' });
    refused(await tester.patch(`/posts/${id}`, changed), 409, 'stream_full');
    const published = await tester.post(`/posts/${id}/publish`, {});
    assert.equal(published.status, 200, published.text);
    assert.equal(published.data.content, 'again');
    const [target] = published.data.targets as { id: string; scheduledAt: string }[];
    assert.ok(target);
    const { scheduledAt: dueAt } = target;
    const moved = { type: 'TargetRescheduled', data: { dueAt, scheduledLocal: null, jitterSeconds: 0 } };
    await fill(`target-${target.id}`, moved, maxOptionalEvents, id);
    refused(
      await tester.post(`/post-targets/${target.id}/reschedule`, { scheduledAt: tomorrow() }),
      409,
      'stream_full',
    );
    const canceled = await tester.post(`/post-targets/${target.id}/cancel`, {});
    assert.equal(canceled.data.status, 'canceled', canceled.text);
  });

  t('a client: no name is claimed for a change that is refused, and it can be archived', async () => {
    const { data } = await tester.post('/clients', { name: 'Full', type: 'brand' });
    await fill(`client-${data.id}`, { type: 'ClientUpdated', data: { approvalRequired: false } }, maxOptionalEvents);
    const before = await world.head();
    refused(await tester.patch(`/clients/${data.id}`, { approvalRequired: true }), 409, 'stream_full');
    refused(await tester.patch(`/clients/${data.id}`, { name: 'Fuller' }), 409, 'stream_full');
    assert.equal(await world.head(), before, 'a refused call stored events');
    assert.equal((await tester.post('/clients', { name: 'Fuller', type: 'brand' })).status, 200);
    assert.equal((await tester.delete(`/clients/${data.id}`)).status, 200);
  });
});
