import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { post } from '#domain/post/post.ts';
import { isBeingCanceled, target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('../../support/publisher-process.ts', import.meta.url));

suite('deaths over a post for the network’s own scheduler', { drawn: true, costs: 13, timeoutMs: 240_000 }, (t) => {
  let world: PublishingWorld;
  let facebook: Account;
  let youtube: Account;
  const mortals = new Mortals(script, () => [world.url]);
  const child = mortals.child.bind(mortals);
  const died = mortals.died.bind(mortals);
  const schedule = async (account: Account) => {
    const dueAt = Date.now() + 3_600_000;
    const { postId, targetIds } = await world.schedule([account], { dueAt, scheduleMode: 'native' });
    return { postId, id: targetIds[0] ?? '' };
  };
  /** Whether each post that the network took for a target is still there. */
  const there = async (id: string): Promise<readonly boolean[]> =>
    (await world.sandbox.creates(id)).flatMap(({ outcome, undoneAt }) =>
      outcome === 'created' ? [undoneAt === null] : [],
    );

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    const clientId = await world.client();
    facebook = await world.connect(clientId, 'facebook');
    youtube = await world.connect(clientId, 'youtube');
  });
  // What a failed test leaves alive would take the work of the next one.
  t.after.each(async () => {
    await mortals.end();
    await world.stopAll();
  });
  t.after(() => world.close());

  const handOver = [
    'publisher:after-claim',
    'publisher:after-boundary',
    'sandbox.boundary_appended',
    'sandbox.post_accepted',
    'publisher:after-call',
    'publisher:after-hand-over',
    'publisher:after-handed-over',
  ];
  for (const point of handOver) {
    t(`killed at ${point}: handed over once by the next worker, or recorded as unknown`, async () => {
      const dying = await child(point);
      const { id } = await schedule(youtube);
      await died(dying);
      const publisher = world.publisher();
      await world.all([id], 'handed_to_platform');
      assert.deepEqual(await there(id), [true]);
      await publisher.stop();

      const again = await child(point);
      const other = await schedule(facebook);
      await died(again);
      const next = world.publisher();
      // Nothing proves on facebook that a call was never made.
      const isCalled = !['publisher:after-boundary', 'sandbox.boundary_appended'].includes(point);
      await world.all([other.id], isCalled ? 'handed_to_platform' : 'outcome_unknown');
      assert.deepEqual(await there(other.id), isCalled ? [true] : []);
      await next.stop();
    });
  }

  /** Cancels the post as DELETE does: the intent, and then its targets. */
  const deletePost = async (postId: string, id: string) => {
    const context = world.context();
    const unsettled = [{ targetId: id, appliedRevision: 0 }];
    await execute(world.store, post, postId, { type: 'Delete', unsettled }, context);
    await fanOut(world.store, postId, context);
  };

  for (const point of ['publisher:after-claim', 'publisher:after-boundary', 'publisher:after-call']) {
    t(`killed at ${point}, then canceled: nothing stays at the network`, async () => {
      const dying = await child(point);
      const { postId, id } = await schedule(youtube);
      await died(dying);
      await deletePost(postId, id);
      const left = await world.target(id);
      assert.equal(left.status === 'canceled', point === 'publisher:after-claim', 'canceled before it is');
      assert.ok(left.status === 'canceled' || isBeingCanceled(left), left.status);
      const publisher = world.publisher();
      await world.all([id], 'canceled');
      assert.deepEqual(await there(id), point === 'publisher:after-call' ? [false] : []);
      assert.ok(!(await world.story(`post-${postId}`)).includes('PostTargetsSkipped'));
      await publisher.stop();
    });
  }

  /** Moves a target as a caller does. */
  const move = async ({ postId, id }: { readonly postId: string; readonly id: string }, dueAt: string) => {
    const commandId = `move-${id}`;
    const now = new Date().toISOString();
    const command = { type: 'Reschedule', commandId, dueAt, scheduledLocal: null, jitterSeconds: 0, now } as const;
    await execute(world.store, target, id, command, { ...world.context(), commandId }, { partitionKey: postId });
  };

  for (const point of ['publisher:before-reschedule', 'publisher:after-reschedule', 'publisher:after-time-change']) {
    t(`killed at ${point}: the same post at its new time by the next worker, or canceled`, async () => {
      const first = world.publisher();
      const [moved, canceled] = [await schedule(youtube), await schedule(facebook)];
      await world.all([moved.id, canceled.id], 'handed_to_platform');
      await first.stop();
      const dueAt = new Date(Date.now() + 7_200_000).toISOString();
      for (const one of [moved, canceled]) {
        const dying = await child(point);
        await move(one, dueAt);
        await died(dying);
        // Somebody wants it gone while nobody knows which time the network has.
        if (one === canceled) await deletePost(one.postId, one.id);
      }
      const next = world.publisher();
      const state = await until('it is moved', async () => {
        const now = await world.target(moved.id);
        return now.status === 'handed_to_platform' && now.undo === null && now.common.dueAt === dueAt ? now : null;
      });
      const [create, ...more] = await world.sandbox.creates(moved.id);
      assert.deepEqual([create?.scheduledFor?.toISOString(), create?.undoneAt, more], [dueAt, null, []]);
      assert.deepEqual([state?.common.attempts, state?.otherTimes], [1, []]);
      const changes = (await world.story(`target-${moved.id}`)).filter((type) => type === 'TargetNativeTimeChanged');
      assert.equal(changes.length, 1);
      await world.all([canceled.id], 'canceled');
      assert.deepEqual(await there(canceled.id), [false]);
      await next.stop();
    });
  }

  for (const point of ['publisher:before-revise', 'publisher:after-revise', 'publisher:after-content-change']) {
    t(`killed at ${point}: the same post with its new content by the next worker, or canceled`, async () => {
      const first = world.publisher();
      const [revised, canceled] = [await schedule(youtube), await schedule(facebook)];
      await world.all([revised.id, canceled.id], 'handed_to_platform');
      await first.stop();
      for (const one of [revised, canceled]) {
        const dying = await child(point);
        const { state } = await world.store.load(post, one.postId);
        assert.ok(state.status === 'live');
        const body = { ...state.body, content: 'better' };
        const command = { type: 'Revise', commandId: randomUUID(), changed: ['content'], body } as const;
        const intent = { ...command, targetIds: [one.id], times: null };
        const loaded = await execute(world.store, post, one.postId, intent, world.context());
        await fanOut(world.store, one.postId, world.context(), { loaded });
        await died(dying);
        // Somebody wants it gone while nobody knows which content the network has.
        if (one === canceled) await deletePost(one.postId, one.id);
      }
      const next = world.publisher();
      await until('it is revised', async () => {
        const now = await world.target(revised.id);
        return now.status === 'handed_to_platform' && now.undo === null && now.common.postRevision === 1;
      });
      const [create, ...more] = await world.sandbox.creates(revised.id);
      assert.deepEqual([create?.content, create?.undoneAt, more], ['better', null, []]);
      const changes = (await world.story(`target-${revised.id}`)).filter((type) => type === 'TargetNativeRevised');
      assert.equal(changes.length, 1);
      await world.all([canceled.id], 'canceled');
      assert.deepEqual(await there(canceled.id), [false]);
      await next.stop();
    });
  }

  for (const point of [
    'publisher:before-undo',
    'sandbox.post_undone',
    'publisher:after-undo',
    'publisher:after-undone',
  ]) {
    t(`killed at ${point}: canceled, or ours at its new time, by the next worker`, async () => {
      const first = world.publisher();
      const canceled = await schedule(facebook);
      const moved = await schedule(youtube);
      await world.all([canceled.id, moved.id], 'handed_to_platform');
      await first.stop();
      const now = new Date().toISOString();
      const dying = await child(point);
      const ask = { type: 'Cancel', reason: 'requested', postRevision: null, now } as const;
      await execute(world.store, target, canceled.id, ask, world.context(), { partitionKey: canceled.postId });
      await died(dying);
      const second = world.publisher();
      await world.all([canceled.id], 'canceled');
      assert.deepEqual(await there(canceled.id), [false]);
      await second.stop();
      const again = await child(point);
      // Too soon for the network's own scheduler.
      await move(moved, new Date(Date.now() + 300_000).toISOString());
      await died(again);
      const next = world.publisher();
      const [ours] = await world.all([moved.id], 'pending');
      assert.equal(ours?.status === 'pending' && ours.common.scheduleMode, 'managed');
      assert.deepEqual(await there(moved.id), [false]);
      await next.stop();
    });
  }

  t('no post was made twice', async () => {
    assert.deepEqual(await world.sandbox.duplicates(), []);
  });
});
