import { cadenceOf, callsOfContent, isLimited, reachOf } from '#domain/cadence.ts';
import { graceMs, type TakenSlot, type Turn, turnOf } from '#domain/cadence-turn.ts';
import { attemptAt, type TargetIn } from '#domain/target.ts';
import type { Taking } from './account-slots.ts';
import type { WorkContext } from './context.ts';

/** How often an account publishes, at the claim of its targets. */

/** Milliseconds after which a target is looked at again for whose account other processes decide now. */
const busyMs = 500;

/** Milliseconds since its last step for which an attempt is looked for; longer than publishers are ever down. */
const underWayMs = 86_400_000;

/**
 * Whether the target goes out now. It has its slot when this returns: the present one, or the one that it waits for. Its
 * place in the network’s own scheduler was checked when it was composed. A thread that has begun to go out waits for no
 * count of ours: a half thread is worse than a call that the network refuses, and the network names the time of the next
 * one. An account that nothing limits costs no query.
 *
 * If we die between the slot and the claim or deferral that it is for, the next worker of the target takes the slot
 * again, since a target’s own slot never stands in its way.
 */
export const cadenceTurn = async (context: WorkContext, target: TargetIn<'pending'>): Promise<Turn> => {
  const { tools, leased, conditions } = context;
  const { accountId, platform, targetId, scheduleMode, publishedSegments, deferredSince } = target.common;
  const { state } = conditions.latest.account;
  if (state.status === 'none' || scheduleMode === 'native') return { kind: 'go' };
  const { workspaceId } = leased.context();
  const cadence = cadenceOf(state, (await tools.cadence.rules(workspaceId)) ?? []);
  if (!isLimited(cadence)) return { kind: 'go' };
  const isBegun = publishedSegments.length > 0;
  const calls = callsOfContent(await context.streams.content(target), platform);
  const wanted = {
    ...{ targetId, calls: calls - publishedSegments.length, dueAt: Date.parse(attemptAt(target)) },
    deferredSince: deferredSince === null ? null : Date.parse(deferredSince),
  };
  const [now, reach] = [tools.now(), reachOf(cadence)];
  const asked = {
    ...{ workspaceId, accountId, waitingFrom: now - graceMs },
    out: { from: now - reach - underWayMs, to: now + reach },
  };
  const turn = await tools.cadence.slots.take(asked, tools.now, ({ entries, rows }): Taking<Turn> => {
    const at = tools.now();
    const unshown = new Set(entries.map((one) => one.targetId));
    const taken: readonly TakenSlot[] = [...entries, ...rows.filter((one) => !unshown.has(one.targetId))];
    const result: Turn = isBegun ? { kind: 'go' } : turnOf(cadence, taken, { ...wanted, now: at });
    const of = { targetId, calls, revision: leased.revision };
    if (result.kind === 'go') return { result, entry: { ...of, at, state: 'under_way' } };
    if (result.kind === 'wait' && result.holds) return { result, entry: { ...of, at: result.until, state: 'waiting' } };
    return { result, entry: null };
  });
  return turn ?? (isBegun ? { kind: 'go' } : { kind: 'rest', ms: busyMs });
};
