import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { recordOutcomes, recordOutcomesOf } from '#services/workflows/posts/outcomes.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld, composer, refused } from '#test/support/composing.ts';
import type { Answered } from '#test/support/http.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester, composed: all } = await composedWorld(['x', 'bluesky']);
const twin = testTwinIdOf(world.workspaceId);
const start = { type: 'Start', now: '2099-01-01T00:00:00.000Z' } as const;
const published = {
  type: 'RecordPublished',
  ...{ attempt: 1, takeover: 0, externalId: 'n1', permalink: null, publishedAt: '2026-11-01T00:00:00.000Z' },
} as const;

const idsOf = (answer: Answered) => (answer.data.targets as readonly { readonly id: string }[]).map(({ id }) => id);
const statusesOf = (answer: Answered) =>
  (answer.data.targets as readonly { readonly status: string }[]).map(({ status }) => status).sort();
const tell = async (postId: string, id: string, ...commands: readonly TargetCommand[]): Promise<void> => {
  for (const command of commands) {
    await execute(world.store, target, id, command, contextOf(world.operator, twin), { partitionKey: postId });
  }
};
/** What the outcomes process does once it comes to these targets. */
const recorded = async (...ids: readonly string[]): Promise<void> => {
  for (const id of ids) await recordOutcomes(world.store, await world.store.readStream(`target-${id}`));
};
/** A post of which the network's own scheduler has its one target, due in an hour. */
const handedOver = async () => {
  const own = await composer(world, ['facebook']);
  const schedule = { type: 'at', scheduledAt: new Date(Date.now() + 3_600_000).toISOString() };
  const made = await tester.post('/posts', own.body({ scheduleMode: 'native', schedule }));
  const [id = ''] = idsOf(made);
  const claim = { attempt: 1, takeover: 0 };
  await tell(
    made.data.id,
    id,
    { type: 'Start', now: new Date().toISOString() },
    { type: 'Checkpoint', ...claim, step: 'boundary', data: {}, deadline: start.now },
    { type: 'RecordHandedOver', ...claim, nativeId: 'n1' },
  );
  return { postId: made.data.id, id, path: `/posts/${made.data.id}` };
};
const typesOf = async (stream: string) => (await world.store.readStream(stream)).map(({ type }) => type);

suite('deleting a post over HTTP', (t) => {
  t('a draft is gone everywhere; a repeat answers the same, and its key shows the birth', async () => {
    const key = randomUUID();
    const body = all.body({ saveDraft: true, content: 'Never mind.' });
    const draft = await tester.post('/posts', body, { key });
    const { id } = draft.data;
    const path = `/posts/${id}`;
    refused(await tester.delete(path, { headers: { 'if-match': '"7"' } }), 412, 'revision_mismatch');
    const gone = await tester.delete(path, { headers: { 'if-match': '"0"' } });
    assert.equal(gone.status, 200, gone.text);
    assert.deepEqual([gone.data.status, gone.data.content, gone.data.targets], ['discarded', 'Never mind.', []]);
    assert.equal(gone.headers.get('etag'), '"1"');
    assert.deepEqual((await tester.delete(path, { headers: { 'if-match': '"0"' } })).data, gone.data);
    assert.deepEqual(await typesOf(`post-${id}`), ['PostDrafted', 'PostDiscarded']);
    await world.settled();
    refused(await tester.get(path), 404, 'not_found');
    const { clientId: _client, saveDraft: _draft, ...replacement } = body;
    refused(await tester.patch(path, replacement), 404, 'not_found');
    refused(await tester.post(`${path}/publish`, {}), 404, 'not_found');
    refused(await tester.post(`${path}/revise`, { content: 'x' }), 404, 'not_found');
    for (const query of ['', '&status=draft', '&search=never'])
      assert.deepEqual((await tester.get(`/posts?clientId=${all.clientId}${query}`)).rows, []);
    refused(await tester.get('/posts?status=discarded'), 400, 'invalid_parameter');
    const birth = await tester.post('/posts', body, { key });
    assert.equal(birth.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(birth.data, draft.data);
  });

  t('of a scheduled post everything open is canceled; the post stays', async () => {
    const made = await tester.post('/posts', all.body());
    const path = `/posts/${made.data.id}`;
    const deleted = await tester.delete(path, { headers: { 'if-match': '"0"' } });
    assert.equal(deleted.status, 200, deleted.text);
    assert.deepEqual(statusesOf(deleted), ['canceled', 'canceled']);
    assert.deepEqual(deleted.data.counts, { total: 2, canceled: 2 });
    const reasons = await Promise.all(idsOf(made).map((id) => world.store.readStream(`target-${id}`)));
    assert.deepEqual(
      reasons.map((events) => events.at(-1)?.data),
      Array(2).fill({ reason: 'post_canceled', postRevision: 1 }),
    );
    const again = await tester.delete(path, { headers: { 'if-match': '"0"' } });
    assert.deepEqual(again.data, deleted.data);
    await world.settled();
    assert.deepEqual((await tester.get(path)).data, deleted.data);
  });

  t('an answer to whatever ends targets shows what became of the post, and so does a read right after it', async () => {
    const ways: Readonly<Record<string, (ids: readonly string[], path: string) => Promise<unknown>>> = {
      delete: async (_, path) => {
        const { data, headers } = await tester.delete(path);
        assert.equal(data.status, 'canceled', 'the answer to DELETE');
        assert.equal(headers.get('etag'), `"${data.revision}"`);
      },
      cancel: async (ids) => {
        for (const id of ids) await tester.post(`/post-targets/${id}/cancel`);
      },
      bulk: (targetIds) => tester.post('/post-targets/bulk', { action: 'cancel', targetIds }),
    };
    for (const [how, end] of Object.entries(ways)) {
      const made = await tester.post('/posts', all.body());
      const path = `/posts/${made.data.id}`;
      await end(idsOf(made), path);
      const shown = await tester.get(path);
      assert.deepEqual([shown.data.status, shown.data.counts], ['canceled', { total: 2, canceled: 2 }], how);
      // What the outcomes process brings at the same time or later is recorded once.
      const before = await typesOf(`post-${made.data.id}`);
      assert.equal(before.filter((type) => type === 'PostCanceled').length, 1, how);
      await recorded(...idsOf(made));
      assert.deepEqual(await typesOf(`post-${made.data.id}`), before, how);
    }
  });

  t('the command and the outcomes process record an outcome at the same time: it is recorded once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const made = await tester.post('/posts', all.body());
      const ids = idsOf(made);
      const { context, now } = { context: contextOf(world.operator, twin), now: new Date().toISOString() };
      const cancel = { type: 'Cancel', reason: 'requested', postRevision: null, now } as const;
      const canceled = await Promise.all(
        ids.map((id) => execute(world.store, target, id, cancel, context, { partitionKey: made.data.id })),
      );
      await Promise.all([
        ...[1, 2].map(() => recordOutcomesOf(world.store, made.data.id, canceled, Date.now)),
        recordOutcomes(
          world.store,
          canceled.flatMap(({ events }) => events),
        ),
        ...canceled.map(({ events }) => recordOutcomes(world.store, events)),
      ]);
      const types = ['PostScheduled', 'PostTargetSettled', 'PostTargetSettled', 'PostCanceled'];
      assert.deepEqual(await typesOf(`post-${made.data.id}`), types);
    }
  });

  t(
    'a target that failed and one that is tried again decide with the canceled ones what became of the post',
    async () => {
      const fail = async (postId: string, id: string) =>
        tell(postId, id, start, { type: 'RecordFailed', attempt: 1, takeover: 0, failure });
      const made = await tester.post('/posts', all.body());
      const [first = '', second = ''] = idsOf(made);
      const path = `/posts/${made.data.id}`;
      await fail(made.data.id, first);
      assert.equal((await tester.delete(path)).data.status, 'failed');
      assert.equal((await tester.get(path)).data.status, 'failed');
      assert.equal((await tester.post(`/post-targets/${first}/retry`)).status, 200);
      assert.equal((await tester.get(path)).data.status, 'scheduled', 'after the retry');
      await tester.post('/post-targets/bulk', { action: 'cancel', targetIds: [first] });
      assert.equal((await tester.get(path)).data.status, 'canceled');
      assert.ok(second);

      // Its failure is recorded, and that it is tried again is not yet: nothing has become of the post.
      const other = await tester.post('/posts', all.body());
      const [third = '', fourth = ''] = idsOf(other);
      await fail(other.data.id, third);
      await recorded(third);
      await tell(other.data.id, third, { type: 'Retry', commandId: randomUUID(), now: new Date().toISOString() });
      await tester.post(`/post-targets/${fourth}/cancel`);
      assert.ok(!(await typesOf(`post-${other.data.id}`)).includes('PostFailed'));
      assert.equal((await tester.get(`/posts/${other.data.id}`)).data.status, 'scheduled');
    },
  );

  t('what is out or on its way stays; where nothing can be canceled it is refused and nothing is stored', async () => {
    const made = await tester.post('/posts', all.body());
    const [first = '', second = ''] = idsOf(made);
    const path = `/posts/${made.data.id}`;
    await tell(made.data.id, first, start, published);
    const deleted = await tester.delete(path);
    assert.equal(deleted.status, 200, deleted.text);
    assert.deepEqual(statusesOf(deleted), ['canceled', 'published']);
    assert.equal((await tester.delete(path)).status, 200, 'a repeat finds it done');

    const other = await tester.post('/posts', all.body());
    const [third = '', fourth = ''] = idsOf(other);
    await tell(other.data.id, third, start, published);
    await tell(other.data.id, fourth, start);
    const before = await world.head();
    refused(await tester.delete(`/posts/${other.data.id}`), 409, 'target_not_pending');
    assert.equal(await world.head(), before, 'a refused call stored events');

    // One was canceled on its own: nothing else can be, and no deletion did it.
    const third3 = await tester.post('/posts', all.body());
    const [fifth = '', sixth = ''] = idsOf(third3);
    await tester.post(`/post-targets/${fifth}/cancel`);
    await tell(third3.data.id, sixth, start);
    refused(await tester.delete(`/posts/${third3.data.id}`), 409, 'target_not_pending');
    assert.ok(second);
  });

  t('a target that was retried a moment ago is canceled with the others', async () => {
    const made = await tester.post('/posts', all.body());
    const [first = ''] = idsOf(made);
    await tell(made.data.id, first, start, { type: 'RecordFailed', attempt: 1, takeover: 0, failure });
    await recorded(first);
    assert.equal((await tester.post(`/post-targets/${first}/retry`)).data.status, 'pending');
    // The post learns of the retry later than its target.
    const deleted = await tester.delete(`/posts/${made.data.id}`);
    assert.equal(deleted.status, 200, deleted.text);
    assert.deepEqual(statusesOf(deleted), ['canceled', 'canceled']);
    await recorded(...idsOf(made));
    assert.equal((await typesOf(`post-${made.data.id}`)).at(-1), 'PostCanceled');
    assert.deepEqual((await tester.delete(`/posts/${made.data.id}`)).data.counts, deleted.data.counts);
  });

  /** The network kept the post that a deletion wanted back, and did not publish it. */
  const notTakenBack = async () => {
    const made = await handedOver();
    assert.equal((await tester.delete(made.path)).status, 200);
    await tell(
      made.postId,
      made.id,
      { type: 'RecordUndoFailed', failure },
      { type: 'Settle', by: 'reconcile', now: new Date().toISOString(), outcome: { kind: 'failed', failure } },
    );
    await recorded(made.id);
    return made;
  };

  t('a target that a deletion did not take back is canceled by the next one, once it is open again', async () => {
    const { id, path } = await notTakenBack();
    assert.equal((await tester.post(`/post-targets/${id}/retry`)).data.status, 'pending');
    await recorded(id);
    const deleted = await tester.delete(path);
    assert.equal(deleted.status, 200, deleted.text);
    assert.deepEqual(statusesOf(deleted), ['canceled']);
  });

  t('a deletion that ended no target is refused when it is repeated', async () => {
    const { path } = await notTakenBack();
    refused(await tester.delete(path), 409, 'target_not_pending');
  });

  t('a target that is taken back from its network already needs no deletion of its own', async () => {
    const { id, path } = await handedOver();
    assert.equal((await tester.post(`/post-targets/${id}/cancel`)).data.undo, 'pending');
    const before = await world.head();
    for (const _ of [1, 2]) {
      const deleted = await tester.delete(path);
      assert.equal(deleted.status, 200, deleted.text);
      assert.deepEqual(statusesOf(deleted), ['handed_to_platform']);
    }
    assert.equal(await world.head(), before, 'the deletion stored events');
  });

  t('a deletion is not repeated on a post that changed since, under the If-Match of the first', async () => {
    const made = await tester.post('/posts', all.body());
    const [first = ''] = idsOf(made);
    const path = `/posts/${made.data.id}`;
    await tell(made.data.id, first, start, { type: 'RecordFailed', attempt: 1, takeover: 0, failure });
    const deleted = await tester.delete(path, { headers: { 'if-match': '"0"' } });
    assert.deepEqual(statusesOf(deleted), ['canceled', 'failed']);
    assert.equal((await tester.post(`${path}/revise`, { content: 'Once more.' })).status, 200);
    const before = await world.head();
    refused(await tester.delete(path, { headers: { 'if-match': '"0"' } }), 412, 'revision_mismatch');
    assert.equal(await world.head(), before, 'a refused call stored events');
    assert.deepEqual(statusesOf(await tester.delete(path)), ['canceled', 'canceled']);
  });

  t('a deletion that died before its targets is completed by its repeat', async () => {
    const made = await tester.post('/posts', all.body());
    const unsettled = idsOf(made).map((targetId) => ({ targetId, appliedRevision: 0 }));
    await execute(world.store, post, made.data.id, { type: 'Delete', unsettled }, contextOf(world.operator, twin));
    const deleted = await tester.delete(`/posts/${made.data.id}`);
    assert.deepEqual(statusesOf(deleted), ['canceled', 'canceled']);
    const outcome = ['PostTargetSettled', 'PostTargetSettled', 'PostCanceled'];
    assert.deepEqual(await typesOf(`post-${made.data.id}`), ['PostScheduled', 'PostTargetsChanged', ...outcome]);
  });

  t('a key limited to clients keeps a draft of its own that names an account that nobody has', async () => {
    const limits = { mode: 'test', clientIds: [all.clientId] } as const;
    const { caller: limited } = await world.keyOf(world.workspaceId, world.memberId, limits);
    const other = await composer(world, ['x']);
    for (const accountId of [randomUUID(), other.accounts.x]) {
      const targets = { mode: 'accounts', accountIds: [all.accounts.x, accountId] };
      const draft = await limited.post('/posts', all.body({ saveDraft: true, targets }));
      assert.equal(draft.status, 200, draft.text);
      const path = `/posts/${draft.data.id}`;
      await world.settled();
      assert.ok((await limited.get('/posts')).rows.some(({ id }) => id === draft.data.id));
      assert.equal((await limited.get(path)).status, 200);
      assert.equal((await limited.delete(path)).data.status, 'discarded');
    }
  });

  t('unknown and foreign posts are one', async () => {
    refused(await tester.delete(`/posts/${randomUUID()}`), 404, 'not_found');
    const made = await tester.post('/posts', all.body({ saveDraft: true }));
    const stranger = await world.agency('Stranger');
    refused(await stranger.tester.delete(`/posts/${made.data.id}`), 404, 'not_found');
  });
});
