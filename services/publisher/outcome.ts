import type { Processing } from '#contracts/ports/platform.ts';
import { wantedAfter } from '#domain/post/content.ts';
import type {
  FollowUp,
  FollowUps,
  RetryPolicy,
  ScheduledTarget,
  TargetCheckpoint,
  TargetCommand,
  TargetIn,
} from '#domain/post-target/target.ts';
import { outcomeNotAskable, outcomeUnknown, outcomeUnreadable } from '#domain/publish-failures.ts';
import { InvalidEvent } from '#runtime/eventing/codec.ts';
import { wellFormedJson } from '#runtime/eventing/well-formed.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Failure, Segment } from '#schemas/target.ts';
import { lapse } from '#services/workflows/accounts/lapse.ts';
import type { CallOutcome } from './call.ts';
import { adapterOf, type WorkContext } from './context.ts';
import type { Fault } from './faults.ts';
import { cleanFailure, cleanPresent, isId } from './files.ts';
import { issueOf } from './follow-up.ts';
import { namedRetry, shortestWait } from './named-retry.ts';
import { askAfter } from './reconcile-schedule.ts';
import type { Content } from './related-streams.ts';
import { isUnreadable } from './request.ts';

/** What follows a target that is published now. @param narrowed what the network says of who sees it */
export const followUpsOf = (
  { common }: ScheduledTarget,
  { overrides, body }: Content,
  now: string,
  { narrowed }: { readonly narrowed?: Failure } = {},
): FollowUps => ({
  ...wantedAfter(common.platform, overrides, body, now),
  ...(narrowed === undefined ? {} : { narrowed: issueOf(cleanFailure(narrowed)) }),
});

/** Milliseconds since the epoch at which it needs a worker: the due try, or the end of a call's time. */
export const instantOf = (one: FollowUp): number => Date.parse(one.status === 'due' ? one.dueAt : one.deadline);

/** When the next of what follows the published target needs a worker; null: nothing does. */
export const nextFollowUp = ({ firstComment, afterSteps }: TargetIn<'published'>): number | null => {
  const all = [...(firstComment === null ? [] : [firstComment]), ...afterSteps];
  return all.length === 0 ? null : Math.min(...all.map(instantOf));
};

/** Fails an attempt before its call. */
export const failBeforeCall = async (
  context: WorkContext,
  target: TargetIn<'publishing'>,
  { failure, segmentIndex }: Fault,
): Promise<void> => {
  await context.leased.record({
    type: 'RecordFailed',
    attempt: target.common.attempts,
    takeover: target.takeover,
    failure: cleanFailure(failure),
    segmentIndex,
  });
  await reportLapsedAccount(context, target);
};

/**
 * Records how the attempt ended, then reports an expired token in the account's stream. If the worker dies in between,
 * the account stays connected, and its next target fails the same way and reports it.
 * @param segment the segment that was called; null: the target is no thread
 */
export const recordOutcome = async (
  context: WorkContext,
  target: TargetIn<'publishing'>,
  content: Content,
  segment: Segment | null,
  outcome: CallOutcome,
): Promise<void> => {
  const { leased, tools } = context;
  const { signal } = leased.lease;
  const commandFor = (said: CallOutcome) => commandOf(context, target, content, segment, said);
  // If the store has the boundary although it did not acknowledge it in time, the outcome is decided behind it.
  const redecide = outcome.kind === 'nothing_sent';
  try {
    await leased.recordUntilStored(commandFor(outcome), signal, redecide);
  } catch (error) {
    if (!(error instanceof InvalidEvent)) throw error;
    // The network's answer does not fit the schema. The worker records the outcome without the network's words.
    tools.logger.error(
      { err: error, targetId: target.common.targetId },
      'the network answer does not fit the event schema; recording the outcome without it',
    );
    const { state } = leased;
    const crossed = state.status === 'publishing' && state.boundary !== null;
    const unreadable = { kind: crossed ? 'unknown' : 'failed', failure: outcomeUnreadable } as const;
    await leased.recordUntilStored(commandFor(unreadable), signal);
  }
  faultPoint('publisher:after-outcome');
  if ('failure' in outcome) await reportLapse(context, target, outcome.failure);
};

/** Characters of a handle as JSON. */
const maxHandle = 4_096;

/**
 * What is recorded of a post that the network accepted. The limit counts from the end of the call, however late the
 * network is asked about it, so that no answer lengthens it. Null: the network had its time already, has no such limit,
 * or says something that cannot be recorded: the outcome is unknown.
 */
export const acceptance = (
  context: WorkContext,
  target: ScheduledTarget,
  boundary: TargetCheckpoint | null,
  { handle, askAt }: Processing,
): { readonly handle: unknown; readonly askAt: string; readonly until: string } | null => {
  const { tools, conditions } = context;
  const adapter = adapterOf(context, target, conditions.latest);
  const limitMs = adapter?.processingLimitMs?.(target.common.platform) ?? null;
  if (limitMs === null || boundary === null || boundary.deadline === null || boundary.segment !== null) return null;
  const now = tools.now();
  const until = Date.parse(boundary.deadline) + limitMs;
  const kept = wellFormedJson(handle);
  if (until <= now || JSON.stringify(kept).length > maxHandle) return null;
  const next = Math.min(now + askAfter(askAt, now - tools.clockAheadMs(), tools.processingRest), until);
  return { handle: kept, askAt: new Date(next).toISOString(), until: new Date(until).toISOString() };
};

export const retryPolicy = ({ config, random }: WorkContext['tools']): RetryPolicy => ({
  deferDelaysMs: config.deferDelaysMs,
  maxRateLimits: config.maxRateLimits,
  jitter: random(),
});

const commandOf = (
  context: WorkContext,
  target: TargetIn<'publishing'>,
  content: Content,
  segment: Segment | null,
  outcome: CallOutcome,
): TargetCommand => {
  const claim = { attempt: target.common.attempts, takeover: target.takeover };
  const now = context.leased.now();
  const { config } = context.tools;
  const policy = retryPolicy(context.tools);
  switch (outcome.kind) {
    case 'published':
      // The next segment of the thread cannot reply to a post without a usable id.
      if (segment !== null && segment.index + 1 < segment.of && !isId(outcome.externalId)) {
        return commandOf(context, target, content, segment, { kind: 'unknown', failure: outcomeUnreadable });
      }
      return {
        ...{ ...claim, type: 'RecordPublished', ...cleanPresent(outcome, now), segment },
        ...followUpsOf(target, content, now, outcome),
      };
    case 'handed_over':
      // Nobody could ask for or take back a scheduled post without a usable id.
      if (!isId(outcome.nativeId)) {
        return commandOf(context, target, content, segment, { kind: 'unknown', failure: outcomeUnreadable });
      }
      return { ...claim, type: 'RecordHandedOver', nativeId: outcome.nativeId };
    case 'outside_window':
      return { ...claim, type: 'RecordOutsideWindow', now, failure: cleanFailure(outcome.failure) };
    case 'accepted': {
      const { state } = context.leased;
      const accepted = acceptance(context, target, state.status === 'publishing' ? state.boundary : null, outcome);
      if (accepted !== null) return { ...claim, type: 'RecordAccepted', ...accepted };
      return commandOf(context, target, content, segment, { kind: 'unknown', failure: outcomeUnknown });
    }
    case 'failed':
      return { ...claim, type: 'RecordFailed', failure: cleanFailure(outcome.failure) };
    case 'rate_limited': {
      const { targetId, rateLimits } = target.common;
      const { retryAt, failure } = namedRetry(context, targetId, outcome, shortestWait(context.tools, rateLimits));
      return { ...claim, type: 'RecordRateLimited', retryAt, failure: cleanFailure(failure), policy };
    }
    case 'deferred':
    case 'nothing_sent':
      // If we die before this is stored, a boundary counts as crossed, and the next worker asks the network.
      return {
        ...{ ...claim, type: 'RecordDeferred', now, failure: cleanFailure(outcome.failure), policy },
        ...(outcome.kind === 'nothing_sent' ? { nothingSent: true } : {}),
      };
    case 'unknown': {
      const reconcileAt = new Date(Date.parse(now) + (config.reconcileDelaysMs[0] ?? 0)).toISOString();
      const { platformCode, platformMessage } = outcome.failure;
      const failure = isUnreadable(target, context.conditions.latest.account.state)
        ? { ...outcomeNotAskable, platformCode, platformMessage }
        : outcome.failure;
      const command = { ...claim, type: 'RecordUnknown', failure: cleanFailure(failure), reconcileAt } as const;
      if (outcome.retryAt === undefined) return command;
      const named = { retryAt: outcome.retryAt, failure };
      return { ...command, retryAt: namedRetry(context, target.common.targetId, named, 0).retryAt };
    }
  }
};

/**
 * Reports the account if the target failed because of an expired token. The account's decider records the report once
 * per lapse. The worker does not report an account that was reauthorized after the worker read it.
 */
export const reportLapsedAccount = async (context: WorkContext, target: ScheduledTarget): Promise<void> => {
  const { state } = context.leased;
  if (state.status === 'failed') await reportLapse(context, target, state.failure);
};

/** Reports the account if this failure says that its token expired. */
export const reportLapse = async (context: WorkContext, target: ScheduledTarget, failure: Failure): Promise<void> => {
  const { leased, tools, conditions } = context;
  if (failure.category !== 'reauth_required') return;
  const reason = failure.platformMessage ?? failure.message;
  await lapse(tools.store, target.common.accountId, reason, leased.context(), conditions.latest.account.revision);
};
