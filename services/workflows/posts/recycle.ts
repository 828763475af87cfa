import type { Pool } from 'pg';
import { isConflict } from '#contracts/ports/event-store.ts';
import { birthOf } from '#domain/decider.ts';
import { recycledPostIdOf } from '#domain/ids.ts';
import { type LivePost, type PostState, post, publishedAtOf, statusOf } from '#domain/post/post.ts';
import { isOut, type RecycleRun, type RecycleSettings } from '#domain/post/post-recycle.ts';
import { afterRun, beforeOf, nextRun, patternOf, type RecyclePattern } from '#domain/post/recycle-times.ts';
import { type TargetState, target } from '#domain/post-target/target.ts';
import type { DomainStore, Loaded, Positions } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { causedBy, serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { restoresSince } from '#runtime/work/restores.ts';
import type { PostEvent } from '#schemas/post.ts';
import { fanOut } from '../fan-out.ts';
import { tendApprovals } from './approvals.ts';

/**
 * The copies of a recycled post, as its stream knows them. A copy is stored first and then recorded in the stream of its
 * origin. Its id follows from the origin and its number, so that no two processes make it twice; if we die in between,
 * the next worker on the origin finds the copy by that id and records it before anything else.
 */

export interface RecyclingStore {
  readonly store: DomainStore;
  /** Has the restores. */
  readonly pool: Pool;
  /** Milliseconds since the epoch, by the clock of the workspace. */
  readonly now: () => number;
  /** Milliseconds by which that clock is ahead of real time; absent: `now` is real. */
  readonly aheadMs?: number;
}

/** Streams of targets that are read at the same time. */
const readAtOnce = 50;

/** A copy of which targets still wait. */
export interface WaitingCopy {
  readonly id: string;
  readonly targetIds: readonly string[];
  /** They are canceled, and a network is asked to give one of them back. */
  readonly asked: boolean;
}

/** The times of a recycled post, and what of its last copies waits. */
export interface Recycled {
  readonly pattern: RecyclePattern;
  readonly waiting: readonly WaitingCopy[];
}

const statesOf = async (store: DomainStore, ids: readonly string[]): Promise<ReadonlyMap<string, TargetState>> => {
  const found = new Map<string, TargetState>();
  for (let at = 0; at < ids.length; at += readAtOnce) {
    const some = ids.slice(at, at + readAtOnce);
    const loaded = await Promise.all(some.map((id) => store.load(target, id)));
    for (const [index, id] of some.entries()) found.set(id, loaded[index]?.state ?? target.initial);
  }
  return found;
};

/** The later one counts: what an account published last. */
const noteOut = (last: Map<string, string>, accountId: string, at: string): void => {
  if (at > (last.get(accountId) ?? '')) last.set(accountId, at);
};

/** Notes when the copy went out. @returns its targets that wait */
const lookAtCopy = async (
  { store }: Pick<RecyclingStore, 'store'>,
  id: string,
  last: Map<string, string>,
  now: string,
): Promise<WaitingCopy | null> => {
  const { state } = await store.load(post, id);
  // One that an approver sent back is a draft: a person publishes it.
  if (state.status !== 'live') return null;
  const outcomeOf = (targetId: string) => state.targets[targetId]?.outcome ?? null;
  const open = state.plan.targets.filter(({ targetId }) => {
    const outcome = outcomeOf(targetId);
    return outcome === null || outcome === 'failed';
  });
  const states = await statesOf(
    store,
    open.map(({ targetId }) => targetId),
  );
  const targetIds: string[] = [];
  let asked = false;
  for (const { targetId, accountId } of state.plan.targets) {
    const known = states.get(targetId);
    const before = known === undefined ? null : beforeOf(known, now);
    if (before?.kind === 'waits') targetIds.push(targetId);
    if (before?.kind === 'waits' && before.asked) asked = true;
    const at = before?.kind === 'out' ? before.at : state.targets[targetId]?.publishedAt;
    if (at) noteOut(last, accountId, at);
  }
  return targetIds.length === 0 ? null : { id, targetIds, asked };
};

/** When the targets of the post are due, without those that were canceled; null: the post is not out. */
export const loadRecycled = async (
  recycling: Pick<RecyclingStore, 'store' | 'now'>,
  state: LivePost,
): Promise<Recycled | null> => {
  const publishedAt = publishedAtOf(state);
  if (publishedAt === null) return null;
  const now = new Date(recycling.now()).toISOString();
  const kept = state.plan.targets.filter(({ targetId }) => state.targets[targetId]?.outcome !== 'canceled');
  const last = new Map<string, string>();
  const timed: RecyclePattern['targets'][number][] = [];
  const states = await statesOf(
    recycling.store,
    kept.map(({ targetId }) => targetId),
  );
  for (const one of states.values()) {
    if (one.status === 'none') continue;
    const { accountId } = one.common;
    timed.push({ ...one.common, ...one.common.askedTime });
    const before = beforeOf(one, now);
    if (before.kind === 'out') noteOut(last, accountId, before.at);
    // A person has retried it. One that is held may be held for ever.
    if (before.kind === 'waits' && one.status !== 'awaiting_approval') noteOut(last, accountId, now);
  }
  if (timed.length === 0) return null;
  const waiting: WaitingCopy[] = [];
  for (const copyId of (state.recycle?.copies ?? []).toReversed()) {
    const copy = await lookAtCopy(recycling, copyId, last, now);
    if (copy !== null) waiting.push(copy);
  }
  return { pattern: patternOf(timed, publishedAt, last), waiting };
};

/**
 * The first copy under these settings: the next one on the days that count from the publication, after this instant. Null
 * while targets of the post are still open: the worker plans the copy once none is.
 */
export const nextCopyOf = async (
  recycling: Pick<RecyclingStore, 'store' | 'now'>,
  state: LivePost,
  { everyDays }: Pick<RecycleSettings, 'everyDays'>,
  after: string,
): Promise<RecycleRun | null> => {
  const recycled = isOut(statusOf(state)) ? await loadRecycled(recycling, state) : null;
  return recycled === null
    ? null
    : nextRun(recycled.pattern, { lastDay: state.recycle?.lastDay ?? 0, everyDays }, after);
};

type Scheduled = Extract<PostEvent, { readonly type: 'PostScheduled' }>['data'];

/** Instants of the restores since the post was made, ISO 8601, the newest first. */
export const restoresOf = (
  { pool }: Pick<RecyclingStore, 'pool'>,
  { events }: Loaded<PostState>,
): Promise<readonly string[]> => restoresSince(pool, birthOf(post, events)?.metadata.occurredAt ?? '');

/** The copy of that number, if it exists: it may have been made before the newest restore. */
const copyOf = async (recycling: RecyclingStore, id: string, loaded: Loaded<PostState>, occurrence: number) => {
  for (const restoredAt of [null, ...(await restoresOf(recycling, loaded))]) {
    const newPostId = recycledPostIdOf(id, occurrence, restoredAt);
    const birth = birthOf(post, (await recycling.store.load(post, newPostId)).events);
    if (birth !== undefined) return { newPostId, birth };
  }
  return null;
};

/** Records the next copy of the post, if it exists. @returns the post as it is then */
export const recordCopy = async (
  recycling: RecyclingStore,
  id: string,
  loaded: Loaded<PostState>,
  options: { readonly positions?: Positions } = {},
): Promise<Loaded<PostState>> => {
  const { store, now, aheadMs } = recycling;
  const { state } = loaded;
  if (state.status !== 'live' || state.recycle === null) return loaded;
  const { posted, enabled, settings, setAt } = state.recycle;
  const occurrence = posted + 1;
  const found = await copyOf(recycling, id, loaded, occurrence);
  if (found === null) return loaded;
  const { newPostId, birth } = found;
  const { plan, recycledFrom } = birth.data as unknown as Scheduled;
  const recycled = await loadRecycled(recycling, state);
  if (recycledFrom === undefined || recycled === null) return loaded;
  // Nobody knows yet when the copy goes out: at its time, as far as it is planned.
  const last = new Map(recycled.pattern.last);
  for (const { accountId, dueAt } of plan.targets) noteOut(last, accountId, dueAt);
  const pattern = { ...recycled.pattern, last };
  const { day } = recycledFrom;
  const [scheduledAt = ''] = plan.targets.map(({ dueAt }) => dueAt).sort();
  const then =
    enabled && settings !== null
      ? afterRun(pattern, settings, { lastDay: day, posted: occurrence, after: setAt })
      : null;
  const command = { type: 'RecordRecycled', occurrence, newPostId, day, scheduledAt, then } as const;
  try {
    const context = serviceContext('recycle', causedBy(birth), now(), aheadMs);
    return await execute(store, post, id, command, context, { ...options, loaded, redecide: false });
  } catch (error) {
    if (!isConflict(error)) throw error;
    // What follows depends on the settings, which somebody changed meanwhile, or another process recorded the copy.
    return recordCopy(recycling, id, await store.load(post, id), options);
  }
};

/**
 * Cancels what still waits of the last copies, and withdraws its approval: the next copy takes its place. A repeat names
 * no target twice. If we die between the intent and the cancels, the targets wait still and the next round goes on, or
 * the sweeper carries the intent out; if we die after them, nothing waits, and the next round makes the copy.
 * @returns whether nothing of them can go out any more: a worker, or a network's scheduler, may have been faster
 */
export const replaceCopies = async (
  { store, now, aheadMs }: Pick<RecyclingStore, 'store' | 'now' | 'aheadMs'>,
  waiting: readonly WaitingCopy[],
): Promise<boolean> => {
  let isGone = true;
  for (const { id, targetIds } of waiting) {
    const before = await store.load(post, id);
    const newest = before.events.at(-1);
    if (newest === undefined) continue;
    const context = serviceContext('recycle', causedBy(newest), now(), aheadMs);
    const command = { type: 'CancelTargets', targetIds, reason: 'copy_replaced' } as const;
    await execute(store, post, id, command, context, { loaded: before });
    faultPoint('recycle:before-cancels');
    const { targets } = await fanOut(store, id, context);
    await tendApprovals(store, id);
    for (const targetId of targetIds) {
      const status = targets.get(targetId)?.state.status;
      if (status !== 'canceled' && status !== 'failed') isGone = false;
    }
  }
  return isGone;
};
