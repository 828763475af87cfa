import assert from 'node:assert/strict';
import type { PlatformAdapter, PublishSteps } from '#contracts/ports/platform.ts';
import { type TargetCommand, type TargetIn, target } from '#domain/post-target/target.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { everyWorkspace, holdPublishing, PublishingHold, resumePublishing } from '#runtime/work/publishing-hold.ts';
import { adapterMembers, schedulerMembers } from '#runtime/work/publishing-wall.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const hourMs = 3_600_000;

suite('held publishing', { timeoutMs: 180_000 }, (t) => {
  let world: PublishingWorld;
  let clientId: string;
  let x: Account;
  let facebook: Account;

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    clientId = await world.client();
    x = await world.connect(clientId, 'x');
    facebook = await world.connect(clientId, 'facebook');
  });
  t.after(() => world?.close());

  const story = (id: string) => world.story(`target-${id}`);
  const ask = async (id: string, command: TargetCommand) => {
    const { state } = await world.store.load(target, id);
    const partitionKey = state.status === 'none' ? id : state.common.postId;
    return execute(world.store, target, id, command, world.context(), { partitionKey });
  };
  /** Names of the calls that change something on the network, and of its questions. */
  const spied = (
    called: string[],
    steps: (given: PublishSteps) => PublishSteps = (given) => given,
  ): PlatformAdapter => {
    const over = <Port extends object>(port: Port, kinds: Readonly<Record<string, string>>): Port =>
      new Proxy(port, {
        get: (its, name) => {
          const member: unknown = Reflect.get(its, name, its);
          if (typeof member !== 'function') return member;
          return (...given: unknown[]) => {
            if (kinds[String(name)] === 'outward' || name === 'reconcile') called.push(String(name));
            if (name === 'publish') given[1] = steps(given[1] as PublishSteps);
            const answer: unknown = member.apply(its, given);
            return name === 'nativeScheduler' && answer !== null ? over(answer as object, schedulerMembers) : answer;
          };
        },
      });
    return over(world.sandbox, adapterMembers);
  };

  t('nothing goes out, no event is appended and questions go on; once it ends everything goes out', async () => {
    // What is under way: a post that the network's scheduler has and that is to be taken back, and a comment that is due.
    const first = world.publisher();
    const handed = await world.schedule([facebook], { dueAt: Date.now() + 2 * hourMs, scheduleMode: 'native' });
    await world.all(handed.targetIds, 'handed_to_platform');
    await first.stop();
    const [undoing = ''] = handed.targetIds;
    const now = () => new Date().toISOString();
    await ask(undoing, { type: 'Cancel', reason: 'requested', postRevision: null, now: now() });
    const overrides = { firstComment: 'hi' };
    const variants = [{ platform: 'x' as const, contentOverride: null, mediaIdsOverride: null, overrides }];
    const commented = await world.schedule([x], { dueAt: Date.now() + hourMs, variants });
    const [commenting = ''] = commented.targetIds;
    const common = async () => (await world.target(commenting)) as TargetIn<'pending'>;
    const dueAt = (await common()).common.dueAt;
    await ask(commenting, { type: 'Start', now: dueAt });
    const said = { externalId: 'x-1', permalink: null, publishedAt: now() };
    await ask(commenting, { type: 'RecordPublished', attempt: 1, takeover: 0, ...said, commentDueAt: now() });
    // What is due, what is to be handed over, and an outcome that is asked after.
    const due = await world.schedule([x, facebook], { dueAt: Date.now() - 1_000 });
    const native = await world.schedule([facebook], { dueAt: Date.now() + 2 * hourMs, scheduleMode: 'native' });
    const lost = await world.schedule([await world.connect(clientId, 'x')], { dueAt: Date.now() - 1_000 });
    const [asked = ''] = lost.targetIds;
    await ask(asked, { type: 'Start', now: now() });
    const boundary = {
      type: 'Checkpoint',
      attempt: 1,
      takeover: 0,
      step: 'boundary',
      data: {},
      deadline: now(),
    } as const;
    await ask(asked, boundary);
    const ids = [undoing, commenting, ...due.targetIds, ...native.targetIds];
    const before = await Promise.all(ids.map(story));
    await until('the rows are there', async () => {
      const sql = `select count(*)::int as n from ${view('post_targets')} where id = any($1) and next_action_at is not null`;
      return (await world.pool.query<{ n: number }>(sql, [ids])).rows[0]?.n === ids.length;
    });

    const called: string[] = [];
    const held = world.publisher({ publishing: 'hold' }, { adapterOf: () => spied(called) });
    await until('the network was asked', async () => (await story(asked)).includes('TargetOutcomeUnknown'));
    assert.deepEqual(await Promise.all(ids.map(story)), before);
    await held.stop();
    assert.deepEqual([...new Set(called)], ['reconcile']);

    const open = world.publisher({}, { adapterOf: () => spied(called) });
    await world.all(due.targetIds, 'published');
    await world.all(native.targetIds, 'handed_to_platform');
    await world.all([undoing], 'canceled');
    await until('the comment is made', async () =>
      (await story(commenting)).some((type) => /CommentPosted|CommentFailed/.test(type)),
    );
    assert.deepEqual([...new Set(called)].sort(), ['comment', 'handOver', 'publish', 'reconcile', 'undo']);
    await open.stop();
  });

  t('a hold that comes between claim and boundary gives the claim back, and uses up no try', async () => {
    const called: string[] = [];
    const reached = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const slow = (steps: PublishSteps): PublishSteps => ({
      signal: steps.signal,
      checkpoint: (step, data) => steps.checkpoint(step, data),
      moved: (bytes) => steps.moved(bytes),
      boundary: async (data) => {
        reached.resolve();
        await goOn.promise;
        return steps.boundary(data);
      },
    });
    const publisher = world.publisher({ leaseTtlMs: 10_000 }, { adapterOf: () => spied(called, slow) });
    const { targetIds } = await world.schedule([x]);
    const [id = ''] = targetIds;
    await reached.promise;
    const heldAt = performance.now();
    await holdPublishing(world.pool, world.workspaceId, 'ann');
    const seen = new PublishingHold(world.pool, 'on');
    assert.equal((await seen.of(world.workspaceId))?.by, 'ann');
    await until('every process sees it within a second', async () => performance.now() > heldAt + 1_000);
    goOn.resolve();
    const [given] = (await world.all([id], 'pending')) as readonly TargetIn<'pending'>[];
    assert.deepEqual([given?.common.defers, given?.retryAt], [0, given?.common.dueAt]);
    assert.deepEqual(await story(id), ['TargetScheduled', 'TargetPublishStarted', 'TargetPublishDeferred']);
    // A person is told that it is late, as of any other target.
    const late = new Date(Date.now() + hourMs).toISOString();
    await ask(id, { type: 'RecordOverdue', now: late });
    assert.equal((await story(id)).at(-1), 'TargetOverdue');
    assert.equal(await world.created(id), 0);
    await resumePublishing(world.pool, world.workspaceId);
    await world.all([id], 'published');
    assert.equal(await world.created(id), 1);
    await publisher.stop();
  });

  t('what became due meanwhile goes out in its order; a workspace that is held alone stays held', async () => {
    await holdPublishing(world.pool, everyWorkspace, 'ann');
    await holdPublishing(world.pool, everyWorkspace, 'bob');
    const accounts = await Promise.all([0, 1, 2, 3].map(() => world.connect(clientId, 'x')));
    const placeOf = [3, 1, 0, 2];
    const { targetIds } = await world.schedule(accounts, {
      dueAt: (at) => Date.now() - hourMs + (placeOf[at] ?? 0) * 1_000,
    });
    const publisher = world.publisher({ publishConcurrency: 1 });
    const hold = new PublishingHold(world.pool, 'on');
    assert.match((await hold.line()) ?? '', /^hold, by ann since /);
    await until('the rows are there', async () => {
      const sql = `select count(*)::int as n from ${view('post_targets')} where id = any($1) and next_action_at is not null`;
      return (await world.pool.query<{ n: number }>(sql, [targetIds])).rows[0]?.n === targetIds.length;
    });
    await holdPublishing(world.pool, world.workspaceId, 'ann');
    await resumePublishing(world.pool, everyWorkspace);
    assert.equal((await new PublishingHold(world.pool, 'on').of(world.workspaceId))?.by, 'ann');
    for (const id of targetIds) assert.deepEqual(await story(id), ['TargetScheduled']);
    await resumePublishing(world.pool, world.workspaceId);
    await world.all(targetIds, 'published');
    const starts = await Promise.all(
      targetIds.map(async (id) => (await world.sandbox.creates(id))[0]?.callStartedAt.getTime() ?? 0),
    );
    const inOrder = [...starts].sort((a, b) => a - b);
    assert.deepEqual(
      starts.map((at) => inOrder.indexOf(at)),
      placeOf,
    );
    await publisher.stop();
  });
});
