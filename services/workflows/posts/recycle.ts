import { isConflict } from '#contracts/ports/event-store.ts';
import { birthOf } from '#domain/decider.ts';
import { recycledPostIdOf } from '#domain/ids.ts';
import { type LivePost, type PostState, post, publishedAtOf, statusOf } from '#domain/post.ts';
import { isOut, type RecycleRun, type RecycleSettings } from '#domain/post-recycle.ts';
import { afterRun, nextRun, patternOf, type RecyclePattern } from '#domain/recycle-times.ts';
import { target } from '#domain/target.ts';
import type { DomainStore, Loaded, Positions } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { causedBy, serviceContext } from '#runtime/eventing/service-context.ts';
import type { PostEvent } from '#schemas/post.ts';

/**
 * The copies of a recycled post, as its stream knows them. A copy is stored first and then recorded in the stream of its
 * origin. Its id follows from the origin and its number, so that no two processes make it twice; if we die in between,
 * whoever works on the origin next finds the copy by that id and records it before anything else.
 */

export interface RecyclingStore {
  readonly store: DomainStore;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Streams of targets that are read at the same time. */
const readAtOnce = 50;

/** When the targets of the post are due, without those that were canceled; null: the post is not out. */
export const recyclePatternOf = async (
  { store }: Pick<RecyclingStore, 'store'>,
  state: LivePost,
): Promise<RecyclePattern | null> => {
  const publishedAt = publishedAtOf(state);
  if (publishedAt === null) return null;
  const kept = state.plan.targets.filter(({ targetId }) => state.targets[targetId]?.outcome !== 'canceled');
  const timed: RecyclePattern['targets'][number][] = [];
  for (let at = 0; at < kept.length; at += readAtOnce) {
    const some = kept.slice(at, at + readAtOnce);
    const loaded = await Promise.all(some.map(({ targetId }) => store.load(target, targetId)));
    timed.push(...loaded.flatMap((one) => (one.state.status === 'none' ? [] : [one.state.common])));
  }
  return timed.length === 0 ? null : patternOf(timed, publishedAt);
};

/**
 * The first copy under these settings: the next one on the days that count from the publication, after this instant. Null
 * while targets of the post are still open: the worker plans the copy once none is.
 */
export const nextCopyOf = async (
  recycling: Pick<RecyclingStore, 'store'>,
  state: LivePost,
  { everyDays }: Pick<RecycleSettings, 'everyDays'>,
  after: string,
): Promise<RecycleRun | null> => {
  const pattern = isOut(statusOf(state)) ? await recyclePatternOf(recycling, state) : null;
  return pattern === null ? null : nextRun(pattern, { lastDay: state.recycle?.lastDay ?? 0, everyDays }, after);
};

type Scheduled = Extract<PostEvent, { readonly type: 'PostScheduled' }>['data'];

/** Records the next copy of the post, if it exists. @returns the post as it is then */
export const recordCopy = async (
  recycling: RecyclingStore,
  id: string,
  loaded: Loaded<PostState>,
  options: { readonly positions?: Positions } = {},
): Promise<Loaded<PostState>> => {
  const { store, now } = recycling;
  const { state } = loaded;
  if (state.status !== 'live' || state.recycle === null) return loaded;
  const { posted, enabled, settings, setAt } = state.recycle;
  const occurrence = posted + 1;
  const newPostId = recycledPostIdOf(id, occurrence);
  const birth = birthOf(post, (await store.load(post, newPostId)).events);
  if (birth === undefined) return loaded;
  const { plan, recycledFrom } = birth.data as unknown as Scheduled;
  const pattern = await recyclePatternOf(recycling, state);
  if (recycledFrom === undefined || pattern === null) return loaded;
  const { day } = recycledFrom;
  const [scheduledAt = ''] = plan.targets.map(({ dueAt }) => dueAt).sort();
  const then =
    enabled && settings !== null
      ? afterRun(pattern, settings, { lastDay: day, posted: occurrence, after: setAt })
      : null;
  const command = { type: 'RecordRecycled', occurrence, newPostId, day, scheduledAt, then } as const;
  try {
    const context = serviceContext('recycle', causedBy(birth), now());
    return await execute(store, post, id, command, context, { ...options, loaded, redecide: false });
  } catch (error) {
    if (!isConflict(error)) throw error;
    // What follows depends on the settings, which somebody changed meanwhile, or another process recorded the copy.
    return recordCopy(recycling, id, await store.load(post, id), options);
  }
};
