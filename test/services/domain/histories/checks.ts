import assert from 'node:assert/strict';
import { type LivePost, newestBody, statusOf } from '#domain/post/post.ts';
import type { ScheduledTarget } from '#domain/post-target/target.ts';
import { approvalTooLate } from '#domain/publish-failures.ts';
import { bodyAt } from '#projections/models/post-bodies.ts';
import { type PostRow, renderPost, withTargets } from '#projections/models/posts.ts';
import type { TargetRow } from '#projections/models/targets.ts';
import { type DecodedEvent, EventCodec } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { MemoryDataKeys } from '#test/support/domain.ts';
import { wholeOf } from './arrows.ts';
import { contentOf, releasedOf, requestedOf } from './bodies.ts';
import type { World } from './world.ts';

/** What holds after every step of a history, and at its end. */

const rowsOf = (world: World): readonly TargetRow[] =>
  world.targets.flatMap(({ row }) => (row === null ? [] : [row as TargetRow]));

/** The released body is the newest that was released, and only a request that nobody has decided stands beside it. */
export const checkBodies = ({ post: { state, row, events }, targets }: World): void => {
  if (state.status !== 'live') return;
  const planned = events.slice(events.findLastIndex(({ type }) => type === 'PostScheduled'));
  const released = releasedOf(planned);
  const requested = requestedOf(planned);
  const { body, asked } = state;
  assert.equal(state.released, released.length > 0);
  assert.equal(
    body.content,
    released.at(-1) ?? contentOf(planned.findLast(({ data }) => 'body' in data) as DecodedEvent),
  );
  if (asked !== null) assert.deepEqual([state.released, asked.body.content], [true, requested]);
  if (requested !== null && state.released) checkDropped(state);
  const shown = renderPost(row as PostRow, []);
  assert.deepEqual(
    [shown.content, shown.pendingRevision?.content ?? null],
    [body.content, asked?.body.content ?? null],
  );
  assert.equal(shown.campaignId, newestBody(state).campaignId);
  for (const { state: one } of targets) {
    if (one.status === 'none') continue;
    const { postRevision } = one.common;
    assert.equal(bodyAt(row as PostRow, postRevision).content, contentOf(events[postRevision] as DecodedEvent));
  }
};

/** A request that nobody has decided is dropped once nothing waits for it any more. */
const checkDropped = ({ approval, targets, asked }: LivePost): void => {
  const waiting = (approval?.targetIds ?? []).filter((id) => {
    const outcome = targets[id]?.outcome;
    return outcome !== 'published' && outcome !== 'canceled';
  });
  assert.equal(asked !== null, waiting.length > 0, `${waiting} wait for a request`);
};

/** Copies are counted once and in order, none after `times`, and the row wakes the worker for an enabled one alone. */
export const checkRecycle = (world: World): void => {
  const { state, row, events } = world.post;
  if (state.status === 'none') return;
  const { recycle } = state;
  const { recycle: shown, recycle_at: at } = row as PostRow;
  assert.deepEqual(shown, recycle);
  const copies = events.filter(({ type }) => type === 'PostRecycled').map(({ data }) => data.occurrence);
  assert.deepEqual(
    copies,
    copies.map((_, n) => n + 1),
  );
  assert.equal(copies.length, recycle?.posted ?? 0);
  if (!recycle?.enabled) {
    assert.deepEqual([recycle?.next ?? null, at], [null, null]);
    return;
  }
  assert.equal(recycle.stoppedReason, null);
  assert.ok(recycle.settings !== null && recycle.posted < (recycle.settings.times ?? Number.POSITIVE_INFINITY));
  assert.ok(recycle.next === null || at !== null);
};

/** The rows that callers see say what the deciders know, and the counts add up. */
export const checkCounts = (world: World): void => {
  for (const { state, row } of world.targets) {
    if (state.status === 'none') continue;
    const { status, due_at, schedule_mode, attempts, overdue, applied_revision } = row as TargetRow;
    const { common } = state;
    assert.deepEqual(
      [status, due_at, schedule_mode, attempts, overdue, applied_revision],
      [...[state.status, common.dueAt, common.scheduleMode, common.attempts, common.overdue], common.appliedRevision],
    );
    const { unknown_since, deferred_since } = row as TargetRow;
    assert.deepEqual([unknown_since, deferred_since], [common.unknownSince, common.deferredSince]);
    assert.ok(common.provenAbsences <= 3 && common.assumedAbsences <= 1, 'an attempt too many after absences');
  }
  const live = world.post.state;
  if (live.status !== 'live') {
    if (live.status !== 'none' && live.returned !== null) return;
    assert.equal(rowsOf(world).length, 0, 'a post that is not scheduled has targets');
    return;
  }
  const { counts, publishing_count } = withTargets(world.post.row as PostRow, rowsOf(world));
  const { total, ...byStatus } = counts as Readonly<Record<string, number>>;
  const states = world.targets.map(({ state }) => state).filter(({ status }) => status !== 'none');
  assert.equal(total, states.length);
  assert.equal(
    Object.values(byStatus).reduce((sum, one) => sum + one, 0),
    total,
    'the counts do not add up',
  );
  for (const [status, count] of Object.entries(byStatus)) {
    assert.equal(count, states.filter((one) => one.status === status).length, status);
  }
  assert.equal(publishing_count, (byStatus.publishing ?? 0) + (byStatus.processing ?? 0));
  assert.equal(Object.keys(live.targets).length, live.plan.targets.length);
};

/** Partial and canceled are facts that a post states once in its life; two wholes in a row differ. */
export const checkWholes = ({ post: { events } }: World): void => {
  const times = (type: string): number => events.filter((one) => one.type === type).length;
  assert.ok(times('PostPartiallyPublished') <= 1, 'partially published twice');
  assert.ok(times('PostCanceled') <= 1, 'canceled twice');
  for (const [at, { type }] of events.entries()) {
    if (!/^Post(Published|PartiallyPublished|Failed|Canceled)$/.test(type)) continue;
    assert.equal(events[at - 1]?.type, 'PostTargetSettled', `${type} without a settlement`);
  }
};

/** Once the fan-out has run and every outcome is recorded, nothing is left open that no process comes back to. */
export const checkQuiet = (world: World): void => {
  const { state, row, events } = world.post;
  if (state.status !== 'none' && state.status !== 'live' && state.returned !== null) {
    for (const { state: left } of world.targets) {
      // Its time came before the decision was carried out.
      const hasLapsed = left.status === 'failed' && left.failure.code === approvalTooLate.code;
      assert.ok(hasLapsed || left.status === 'canceled', `a target of a returned post is ${left.status}`);
    }
    assert.equal(withTargets(row as PostRow, rowsOf(world)).fan_out_behind, false, 'the return is behind');
  }
  if (state.status !== 'live') return;
  const states = world.targets.map((one) => one.state as ScheduledTarget);
  const whole = wholeOf(states.map(({ status }) => status));
  assert.equal(statusOf(state), whole, `targets are ${states.map(({ status }) => status)}`);
  assert.equal(withTargets(row as PostRow, rowsOf(world)).fan_out_behind, false, 'the fan-out is behind');
  for (const intent of state.intents) {
    for (const targetId of intent.targetIds) {
      const one = states.find(({ common }) => common.targetId === targetId);
      const isDone = intent.skipped.includes(targetId) || (one?.common.appliedRevision ?? 0) >= intent.revision;
      assert.ok(isDone, `${intent.kind} of ${targetId} is neither carried out nor skipped`);
    }
  }
  const said = events.findLast(({ type }) => type === 'PostPublished' || type === 'PostFailed')?.type;
  if (whole === 'published') assert.equal(said, 'PostPublished');
  if (whole === 'failed') assert.equal(said, 'PostFailed');
  if (whole === 'canceled') assert.equal((state as LivePost).saidCanceled, true);
  if (whole === 'partially_published') assert.equal((state as LivePost).saidPartial, true);
};

const codec = new EventCodec(new MemoryDataKeys());

/** Every event fits its schema, and the stored bytes give the state that was kept event by event. */
export const checkReplay = async ({ post, targets }: World): Promise<void> => {
  for (const stream of [post, ...targets]) {
    const read = await Promise.all(
      stream.events.map(async (event) => {
        const bytes = await codec.encode(stream.name, event, event.metadata);
        return codec.decode({ ...event, ...bytes, revision: BigInt(event.revision) });
      }),
    );
    const decider = stream.decider as Parameters<typeof foldEvents>[0];
    assert.deepEqual(foldEvents(decider, stream.events), stream.state);
    assert.deepEqual(foldEvents(decider, read), stream.state);
  }
};
