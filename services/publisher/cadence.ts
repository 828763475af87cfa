import { callsOfContent, type Slot } from '#domain/cadence.ts';
import type { TargetIn } from '#domain/target.ts';
import { waitsUntil } from '#services/workflows/cadence/check.ts';
import type { WorkContext } from './context.ts';

/** How often an account publishes, at the claim of its targets. */

/**
 * Until when the target must wait; null: it may start now, and is noted as started. Its place in the network’s own
 * scheduler was checked when it was composed. A thread that has begun to go out waits for no count of ours: a half thread
 * is worse than a call that the network refuses, and the network names the time of the next one.
 */
export const cadenceWait = async (context: WorkContext, target: TargetIn<'pending'>): Promise<string | null> => {
  const { tools, leased, conditions } = context;
  const { accountId, platform, targetId, scheduleMode, publishedSegments } = target.common;
  const { state } = conditions.latest.account;
  const { cadence } = tools;
  if (state.status === 'none' || scheduleMode === 'native') return null;
  const { network, observed } = state;
  const isBegun = publishedSegments.length > 0;
  const [source, content] = await Promise.all([
    isBegun ? null : cadence.source(leased.context().workspaceId),
    context.streams.content(target),
  ]);
  const at = tools.now();
  const calls = callsOfContent(content, platform) - publishedSegments.length;
  const timed = { accountId, account: { platform, network, observed }, at, calls };
  if (source === null) {
    cadence.starts.note(accountId, { targetId, at, calls, isOut: true });
    return null;
  }
  const isOther = (one: Slot): boolean => one.isOut && one.targetId !== targetId;
  const others = cadence.starts.of(accountId, at).filter(isOther);
  const until = await waitsUntil(source, timed, isOther, others);
  // Another start of this process may have come while the rows were read.
  const before = cadence.starts.of(accountId, at).filter(isOther);
  if (until === null && before.length === others.length) {
    cadence.starts.note(accountId, { targetId, at, calls, isOut: true });
    return null;
  }
  return until === null ? cadenceWait(context, target) : new Date(until).toISOString();
};
