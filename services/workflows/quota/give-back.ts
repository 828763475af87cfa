import { isConflict } from '#contracts/ports/event-store.ts';
import { quotaIdOf } from '#domain/ids.ts';
import { lacksIntent, type PostState, post } from '#domain/post/post.ts';
import { neededTimes, type TargetState, target, timesEver } from '#domain/post-target/target.ts';
import { placesOf, postsWithPlaces, type QuotaPlace, type QuotaState } from '#domain/quota.ts';
import { monthOf } from '#domain/zones.ts';
import type { CommandContext, DomainStore, Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { inGroups, planOf } from '../fan-out.ts';
import { type QuotaRules, takePlaces } from './reserve.ts';
import { loadPlaces, writeQuota } from './write.ts';

/**
 * Gives back places that nobody needs any more. The stream of the month is read before those of the post and of the
 * target, and a place is given back only by the reservation that was seen: a caller that reserves it meanwhile keeps it.
 * Any process may run this any number of times. If we die between an append that ends or moves a target and this, the
 * consumer of outcomes runs it for the event of the target.
 */

export interface Tending {
  readonly store: DomainStore;
  readonly context: CommandContext;
  readonly rules: QuotaRules;
}

interface Streams {
  readonly post: Loaded<PostState>;
  readonly targets: ReadonlyMap<string, Loaded<TargetState>>;
}

const loadTargets = async (store: DomainStore, ids: readonly string[]): Promise<Streams['targets']> => {
  const found = new Map<string, Loaded<TargetState>>();
  await inGroups(ids, async (id) => {
    found.set(id, await store.load(target, id));
  });
  return found;
};

const loadStreams = async (store: DomainStore, postId: string, ids: readonly string[]): Promise<Streams> => {
  const [whole, targets] = await Promise.all([store.load(post, postId), loadTargets(store, ids)]);
  return { post: whole, targets };
};

/**
 * Whether the append that a place was taken for has come, and was carried out on the target, or can never come because
 * another one was first.
 */
const isDecided = ({ awaits }: QuotaPlace, targetId: string, { post: whole, targets }: Streams): boolean => {
  const one = targets.get(targetId);
  if (awaits === null || one === undefined) return awaits === null;
  if (awaits.stream === 'target') return one.revision > awaits.revision;
  if (whole.revision <= awaits.revision) return false;
  const live = planOf(whole.state);
  if (live === null) return true;
  if (one.state.status === 'none') return !live.plan.targets.some((planned) => planned.targetId === targetId);
  return !lacksIntent(live, targetId, one.state.common.appliedRevision);
};

const isNeeded = (state: TargetState, month: string, { timezone }: QuotaRules): boolean =>
  neededTimes(state).some((dueAt) => monthOf(dueAt, timezone) === month);

const release = async (
  { store, context }: Tending,
  month: string,
  postId: string,
  targets: readonly { readonly targetId: string; readonly revision: number }[],
): Promise<void> => {
  if (targets.length === 0) return;
  await writeQuota(store, quotaIdOf(context.workspaceId, month), { type: 'Release', postId, targets }, context);
};

/**
 * Brings the places of these targets of one post to the months in which they are due. A target that is due in a month
 * without a place gets one, whether or not there is room: nobody is left who could be refused.
 */
export const tendPlaces = async (by: Tending, postId: string, targetIds: readonly string[]): Promise<void> => {
  const { store, context, rules } = by;
  const before = await loadTargets(store, targetIds);
  const times = [...before.values()].flatMap(({ events }) => timesEver(events));
  const months = new Set([...new Set(times)].map((dueAt) => monthOf(dueAt, rules.timezone)));
  const held = new Map<string, QuotaState>();
  for (const month of months) held.set(month, (await loadPlaces(store, quotaIdOf(context.workspaceId, month))).state);
  const streams = await loadStreams(store, postId, targetIds);
  for (const [month, state] of held) {
    const places = placesOf(state, postId);
    const unneeded: { targetId: string; revision: number }[] = [];
    const lacking: { targetId: string; dueAt: string }[] = [];
    for (const [targetId, { state: now }] of streams.targets) {
      const place = places[targetId];
      const needed = isNeeded(now, month, rules);
      if (place === undefined && needed && now.status !== 'none') lacking.push({ targetId, dueAt: now.common.dueAt });
      if (place !== undefined && !needed && isDecided(place, targetId, streams)) {
        unneeded.push({ targetId, revision: place.revision });
      }
    }
    const due = lacking.filter(({ dueAt }) => monthOf(dueAt, rules.timezone) === month);
    if (due.length > 0) await takePlaces(by, { postId, awaits: null, targets: due }, { forced: true });
    await release(by, month, postId, unneeded);
  }
};

/** Age from which an append that a place was taken for is given up, milliseconds. */
export const abandonMs = 60_000;

/** @returns the revision of the stream of the month when it was read, and up to which every reservation is settled */
export const sweepMonth = async (
  by: Tending,
  month: string,
  { now, settled }: { readonly now: number; readonly settled: number },
): Promise<{ readonly revision: number; readonly settled: number }> => {
  const { store, context } = by;
  const { state, revision } = await loadPlaces(store, quotaIdOf(context.workspaceId, month));
  if (revision <= settled) return { revision, settled };
  let open = revision + 1;
  await inGroups(postsWithPlaces(state), async ([postId, places]) => {
    const fresh = Object.entries(places).filter(([, place]) => place.revision > settled);
    const old = fresh.filter(([, { at }]) => Date.parse(at) <= now - abandonMs);
    for (const [, place] of fresh) if (!old.some(([, one]) => one === place)) open = Math.min(open, place.revision);
    if (old.length === 0) return;
    const ids = old.map(([id]) => id);
    let streams = await loadStreams(store, postId, ids);
    const waiting = old.filter(([id, place]) => !isDecided(place, id, streams));
    if (waiting.length > 0) {
      await fence(by, postId, waiting, streams);
      faultPoint('quota:after-fence');
      streams = await loadStreams(store, postId, ids);
    }
    const unneeded: { targetId: string; revision: number }[] = [];
    for (const [targetId, place] of old) {
      if (!isDecided(place, targetId, streams)) open = Math.min(open, place.revision);
      else if (!isNeeded(streams.targets.get(targetId)?.state ?? target.initial, month, by.rules)) {
        unneeded.push({ targetId, revision: place.revision });
      }
    }
    await release(by, month, postId, unneeded);
  });
  return { revision, settled: open - 1 };
};

/**
 * Appends at the revision that the late append expects, which then conflicts: a created post goes on under another id,
 * a changed one is read again. A conflict here means that another append came after all.
 */
const fence = async (
  { store, context }: Tending,
  postId: string,
  waiting: readonly (readonly [targetId: string, place: QuotaPlace])[],
  { post: whole, targets }: Streams,
): Promise<void> => {
  const isAwaited = (stream: 'post' | 'target', revision: number) => (one: (typeof waiting)[number]) =>
    one[1].awaits?.stream === stream && one[1].awaits.revision === revision;
  try {
    if (waiting.some(isAwaited('post', whole.revision))) {
      await execute(store, post, postId, { type: 'Abandon' }, context, { loaded: whole, redecide: false });
    }
    for (const one of waiting) {
      const [targetId] = one;
      const loaded = targets.get(targetId);
      if (loaded === undefined || !isAwaited('target', loaded.revision)(one)) continue;
      const options = { loaded, redecide: false, partitionKey: postId };
      await execute(store, target, targetId, { type: 'LapsePlace' }, context, options);
    }
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
};
