import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { recycledPostIdOf, testTwinIdOf } from '#domain/ids.ts';
import { recycleLeadMs } from '#domain/post/post-recycle.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { recyclePost } from '#services/outcomes/recycles.ts';
import { recordOutcomes } from '#services/workflows/posts/outcomes.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld, composer, refused } from '#test/support/composing.ts';
import type { Ask, Caller } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

const {
  world,
  tester,
  composed: mine,
} = await composedWorld(['x', 'bluesky'], {
  timezone: 'Europe/Berlin',
  zones: { bluesky: 'Asia/Tokyo' },
});
const dayMs = 86_400_000;
const { pathname: nowhere } = new URL(`http://x/posts/${randomUUID()}/recycle`);

suite('recycling a post over HTTP', (t) => {
  const put = (id: string, body: object, ask: Ask = {}, by: Caller = tester) =>
    by.request('PUT', `/posts/${id}/recycle`, { ...ask, body });
  const get = async (id: string) => (await tester.get(`/posts/${id}/recycle`)).data;
  const create = async (more: object = {}) => {
    const made = await tester.post('/posts', mine.body({ ...more }));
    assert.equal(made.status, 200, made.text);
    return made.data as typeof made.data & { readonly targets: readonly { readonly id: string }[] };
  };
  const context = () => contextOf(world.operator, testTwinIdOf(world.workspaceId));
  /** As a publisher and the outcomes would: the target is out at its time. */
  const publish = async (postId: string, id: string) => {
    const { state } = await world.store.load(target, id);
    const publishedAt = state.status === 'none' ? '' : state.common.dueAt;
    const there = { attempt: 1, takeover: 0, externalId: 'e', permalink: null, publishedAt };
    for (const command of [
      { type: 'Start', now: '2099-01-01T00:00:00.000Z' },
      { type: 'RecordPublished', ...there },
    ] as readonly TargetCommand[]) {
      await execute(world.store, target, id, command, context(), { partitionKey: postId });
    }
    await recordOutcomes(world.store, await world.store.readStream(`target-${id}`));
  };
  const published = async (more: object = {}) => {
    const { id, targets } = await create(more);
    for (const one of targets) await publish(id, one.id);
    await world.settled();
    return id;
  };
  const none = { everyDays: null, times: null, until: null, nextAt: null, posted: 0, stoppedReason: null };

  t('is not set at first; set before the publication it has no time yet', async () => {
    const { id, revision } = await create();
    assert.deepEqual(await get(id), { object: 'recycle', postId: id, enabled: false, ...none, revision });
    const set = await put(id, { everyDays: 7, times: 3, until: '2099-01-01T00:00:00+01:00' });
    assert.equal(set.status, 200, set.text);
    assert.deepEqual(set.data, {
      ...{ object: 'recycle', postId: id, enabled: true, ...none },
      ...{ everyDays: 7, times: 3, until: '2098-12-31T23:00:00.000Z', revision: revision + 1 },
    });
    assert.equal(set.headers.get('etag'), `"${revision + 1}"`);
    assert.deepEqual(await get(id), set.data);
    const paused = await put(id, { enabled: false, everyDays: 7 });
    assert.deepEqual([paused.data.enabled, paused.data.everyDays, paused.data.times], [false, 7, null]);
  });

  t(
    'set on a published post: the same wall-clock time so many days later, and never for days that have passed',
    async () => {
      const schedule = { type: 'at', scheduledLocal: '2026-01-05T09:00' };
      const shiftMs = Date.parse('2026-01-05T07:59:00.000Z') - Date.now() - dayMs;
      world.clock.shiftMs = shiftMs;
      const id = await published({ schedule });
      // The account in Tokyo is first: nine o'clock is midnight UTC there, all year.
      assert.equal((await put(id, { everyDays: 100 })).data.nextAt, '2026-04-15T00:00:00.000Z');
      world.clock.shiftMs = shiftMs + 50 * dayMs;
      assert.equal((await put(id, { everyDays: 7 })).data.nextAt, '2026-03-02T00:00:00.000Z');
      world.clock.shiftMs = 0;
    },
  );

  t('while some of its targets are not out yet, it has no time', async () => {
    const { id, targets } = await create();
    const [first] = targets;
    assert.ok(first);
    await publish(id, first.id);
    assert.equal((await put(id, { everyDays: 1 })).data.nextAt, null);
  });

  t('set again with the same settings it changes nothing; other settings replace them as a whole', async () => {
    const id = await published();
    const first = await put(id, { everyDays: 2, times: 5 });
    assert.deepEqual((await put(id, { everyDays: 2, times: 5 })).data, first.data);
    const other = await put(id, { everyDays: 3 });
    assert.deepEqual([other.data.everyDays, other.data.times], [3, null]);
    assert.notEqual(other.data.nextAt, first.data.nextAt);
    const { revision, ...same } = (await put(id, { everyDays: 2, times: 5 })).data;
    assert.deepEqual({ ...same, revision: first.data.revision }, first.data);
    assert.ok(revision > first.data.revision);
  });

  t('is cleared, also twice; the copies that were made are still counted', async () => {
    const id = await published();
    await put(id, { everyDays: 1, times: 2 });
    const cleared = await tester.delete(`/posts/${id}/recycle`);
    assert.equal(cleared.status, 200, cleared.text);
    assert.deepEqual(cleared.data, {
      ...{ object: 'recycle', postId: id, enabled: false, ...none },
      revision: cleared.data.revision,
    });
    assert.deepEqual((await tester.delete(`/posts/${id}/recycle`)).data, cleared.data);
    assert.deepEqual(await get(id), cleared.data);
    const draft = await tester.post('/posts', mine.body({ saveDraft: true }));
    assert.equal((await tester.delete(`/posts/${draft.data.id}/recycle`)).data.enabled, false);
  });

  t('a copy that died before it was recorded is recorded before the settings change', async () => {
    const id = await published({ externalRef: randomUUID() });
    await put(id, { everyDays: 1 });
    const store = Object.assign(Object.create(world.store), {
      append: async (...args: Parameters<typeof world.store.append>) => {
        if (args[0] === `post-${id}`) throw new Error('it died before');
        return world.store.append(...args);
      },
      load: world.store.load.bind(world.store),
    });
    const now = () => Date.now() + 3 * dayMs - recycleLeadMs;
    await assert.rejects(recyclePost({ store, now, pool: world.pool }, id), /it died before/);
    assert.equal((await get(id)).posted, 0);
    const cleared = await tester.delete(`/posts/${id}/recycle`);
    assert.deepEqual([cleared.data.enabled, cleared.data.posted], [false, 1]);
    const copyId = recycledPostIdOf(id, 1);
    const copy = await tester.get(`/posts/${copyId}`);
    assert.deepEqual([copy.data.recycledFrom, copy.data.externalRef], [id, null]);
    refused(await put(copyId, { everyDays: 1 }), 422, 'validation_failed', ['']);
    refused(await put(id, { everyDays: 1, times: 1 }), 422, 'validation_failed', ['/times']);
    assert.equal((await put(id, { everyDays: 1, times: 2 })).data.posted, 1);
  });

  t('drafts, canceled posts, posts of archived clients and unknown ones are refused', async () => {
    const draft = await tester.post('/posts', mine.body({ saveDraft: true }));
    refused(await put(draft.data.id, { everyDays: 1 }), 409, 'post_not_scheduled');
    const canceled = await create();
    await tester.delete(`/posts/${canceled.id}`);
    for (const { id } of canceled.targets) {
      await recordOutcomes(world.store, await world.store.readStream(`target-${id}`));
    }
    refused(await put(canceled.id, { everyDays: 1 }), 409, 'post_not_scheduled');
    refused(await tester.request('PUT', nowhere, { body: { everyDays: 1 } }), 404, 'not_found');
    refused(await tester.get(nowhere), 404, 'not_found');
    refused(await tester.delete(nowhere), 404, 'not_found');
    await tester.delete(`/posts/${draft.data.id}`);
    refused(await put(draft.data.id, { everyDays: 1 }), 404, 'not_found');
    refused(await tester.get(`/posts/${draft.data.id}/recycle`), 404, 'not_found');
    const archived = await composer(world, ['x']);
    const { data } = await tester.post('/posts', archived.body());
    await tester.delete(`/clients/${archived.clientId}`);
    refused(await put(data.id, { everyDays: 1 }), 422, 'client_archived');
  });

  t('its members are checked', async () => {
    const id = await published();
    for (const [body, paths] of [
      [{}, ['/everyDays']],
      [{ everyDays: 0 }, ['/everyDays']],
      [{ everyDays: 366 }, ['/everyDays']],
      [{ everyDays: 1, times: 101 }, ['/times']],
      [{ everyDays: 1, until: 'soon' }, ['/until']],
      [{ everyDays: 1, until: '2020-01-01T00:00:00Z' }, ['/until']],
      [{ everyDays: 30, until: new Date(Date.now() + 2 * dayMs).toISOString() }, ['/until']],
    ] as const) {
      refused(await put(id, body), 422, 'validation_failed', paths);
    }
  });

  t('If-Match guards both', async () => {
    const { id, revision } = await create();
    const stale = { headers: { 'if-match': '"77"' } };
    refused(await put(id, { everyDays: 1 }, stale), 412, 'revision_mismatch');
    refused(await tester.delete(`/posts/${id}/recycle`, stale), 412, 'revision_mismatch');
    const set = await put(id, { everyDays: 1 }, { headers: { 'if-match': `"${revision}"` } });
    assert.equal(set.status, 200, set.text);
  });

  t('a key limited to clients recycles the posts of its clients alone; a viewer reads only', async () => {
    const other = await composer(world, ['x']);
    const foreign = (await tester.post('/posts', other.body())).data.id;
    const own = (await create()).id;
    const options = { mode: 'test', clientIds: [mine.clientId] } as const;
    const { caller } = await world.keyOf(world.workspaceId, world.memberId, options);
    assert.equal((await put(own, { everyDays: 1 }, {}, caller)).status, 200);
    refused(await put(foreign, { everyDays: 1 }, {}, caller), 404, 'not_found');
    refused(await caller.get(`/posts/${foreign}/recycle`), 404, 'not_found');
    refused(await caller.delete(`/posts/${foreign}/recycle`), 404, 'not_found');
    const member = await world.memberOf(world.workspaceId, 'viewer');
    const viewer = (await world.keyOf(world.workspaceId, member, { mode: 'test' })).caller;
    assert.equal((await viewer.get(`/posts/${own}/recycle`)).data.enabled, true);
    refused(await put(own, { everyDays: 2 }, {}, viewer), 403, 'role_required');
    refused(await viewer.delete(`/posts/${own}/recycle`), 403, 'role_required');
  });
});
