import type { TargetEvent } from '#schemas/target.ts';
import type { Decider, Fact } from '../decider.ts';
import { approvalTooLate, usesUpNoTry } from '../publish-failures.ts';
import * as absence from './absence.ts';
import * as afterStep from './after-steps.ts';
import { evolveAfterStep } from './after-steps.ts';
import * as firstComment from './first-comment.ts';
import * as native from './native.ts';
import { evolveNative } from './native.ts';
import * as outcome from './outcome.ts';
import * as overdue from './overdue.ts';
import { lapsePlace } from './places.ts';
import * as processing from './processing.ts';
import * as publish from './publish.ts';
import * as restored from './restored.ts';
import * as schedule from './schedule.ts';
import { type Settle, settle } from './settle.ts';
import * as shift from './shift.ts';
import {
  applied,
  type FirstComment,
  initial,
  type NetworkPost,
  releasedAt,
  remember,
  type TargetCheckpoint,
  type TargetCommon,
  type TargetState,
} from './state.ts';

const evolve = (state: TargetState, event: TargetEvent, fact: Fact): TargetState => {
  if (event.type === 'TargetScheduled') return state.status === 'none' ? scheduled(event.data, fact) : state;
  if (state.status === 'none') return state;
  const { common } = state;
  /** A held target stays held when its time or its content changes. */
  const due = (changed: TargetCommon): TargetState =>
    state.status === 'awaiting_approval' ? { status: 'awaiting_approval', common: changed } : pending(changed);
  switch (event.type) {
    case 'TargetHeld':
      return { status: 'awaiting_approval', common: applied(common, event.data.postRevision) };
    case 'TargetReleased': {
      const { postRevision, dueAt } = event.data;
      return pending({ ...releasedAt(applied(common, postRevision), dueAt), ...inTime });
    }
    case 'TargetRescheduled':
      return due({ ...remember(common, fact), ...event.data, askedTime: null, ...inTime });
    case 'TargetRevised': {
      const { postRevision: appliedRevision, dueAt } = event.data;
      const askedTime = dueAt === common.dueAt ? common.askedTime : null;
      // An upload of the former content must not go out: no later attempt may see its checkpoints.
      const revised = { ...common, ...event.data, appliedRevision, askedTime, checkpoints: [], ...inTime };
      return state.status === 'failed' ? { ...state, common: revised } : due(revised);
    }
    case 'TargetCanceled':
      return { status: 'canceled', common: applied(common, event.data.postRevision ?? 0) };
    case 'TargetRequeued': {
      const { by, dueAt: retryAt } = event.data;
      // A person's retry or revision resets the counts. An automatic requeue does not, or no limit on automatic attempts
      // would hold.
      const counted = by === 'schedule' ? common : { ...remember(common, fact), ...noAttempts, ...inTime };
      return pending(counted, retryAt);
    }

    case 'TargetPublishStarted':
      return {
        status: 'publishing',
        retryAt: state.status === 'pending' ? state.retryAt : null,
        takeover: 0,
        progressAt: 0,
        boundary: null,
        undo: null,
        common: { ...common, attempts: event.data.attempt, knownAt: fact.occurredAt },
      };
    case 'TargetPublishCheckpointed': {
      if (state.status !== 'publishing') return state;
      const { attempt, step, data, deadline, segment = null } = event.data;
      const ahead = fact.aheadMs === undefined ? {} : { aheadMs: fact.aheadMs };
      const checkpoint = { attempt, step, data, deadline, segment, ...ahead };
      return {
        ...state,
        boundary: step === 'boundary' ? checkpoint : state.boundary,
        common: { ...common, checkpoints: [...common.checkpoints, checkpoint] },
      };
    }
    case 'TargetPublishTakenOver':
      return state.status === 'publishing' ? { ...state, takeover: event.data.takeover } : state;
    case 'TargetSegmentPublished':
      if (state.status === 'publishing') {
        return { ...state, boundary: null, progressAt: state.takeover, common: withSegment(common, event.data) };
      }
      if (state.status !== 'outcome_unknown') return state;
      return { ...state, boundary: null, common: withSegment(common, event.data) };

    case 'TargetAcceptedByPlatform':
      return processing.evolveAccepted(state, event.data, fact);
    case 'TargetPublished':
      return { status: 'published', ...postOf(event.data), removedAt: null, ...noFollowUps, common };
    case 'TargetFailed': {
      const { attempt, failure } = event.data;
      return { status: 'failed', failure, common: { ...common, attempts: attempt } };
    }
    case 'TargetApprovalLapsed':
      return { status: 'failed', failure: approvalTooLate, common };
    case 'TargetRateLimited': {
      const { retryAt } = event.data;
      return {
        status: 'rate_limited',
        retryAt,
        common: { ...deferredBy(common, fact), rateLimits: common.rateLimits + 1 },
      };
    }
    case 'TargetPublishDeferred': {
      const { retryAt, failure } = event.data;
      // One that the publisher rescheduled before its claim, or because publishing is held, used up no try.
      const isTry = state.status !== 'pending' && !usesUpNoTry(failure);
      const put = withoutPost(deferredBy(common, fact), state.status === 'publishing' ? state.boundary : null);
      return pending(isTry ? { ...put, defers: common.defers + 1 } : put, retryAt);
    }
    case 'TargetOutcomeUnknown': {
      const isRestored = event.data.reason === 'restored';
      if (state.status === 'outcome_unknown' && isRestored) {
        return { ...state, restored: true, askedFrom: fact.occurredAt, absences: [] };
      }
      if (state.status !== 'publishing' && state.status !== 'processing' && state.status !== 'handed_to_platform') {
        return state;
      }
      const { takeover, boundary } = state;
      const since = { ...common, deferredSince: null, unknownSince: common.unknownSince ?? fact.occurredAt };
      const accepted = state.status === 'processing' ? state.accepted : null;
      const { retryAt } = event.data;
      const asked = {
        ...{ askedFrom: fact.occurredAt, absences: [], restored: isRestored, accepted },
        ...(retryAt === undefined ? {} : { retryAt }),
      };
      // An undo of what the network had has failed by now.
      const of = {
        nativeId: state.status === 'handed_to_platform' ? state.nativeId : null,
        undo: state.status === 'publishing' ? state.undo : null,
      };
      return { status: 'outcome_unknown', takeover, boundary, ...asked, ...of, common: since };
    }
    case 'TargetAbsenceObserved':
      if (state.status !== 'outcome_unknown') return state;
      return { ...state, absences: [...state.absences, event.data.observedAt] };
    case 'TargetOutcomeSettled': {
      const { outcome, by, externalId, permalink, publishedAt, failure, retryAt } = event.data;
      const common = { ...state.common, knownAt: fact.occurredAt };
      if (outcome === 'absent') return pending(absentBy(by, common), retryAt ?? fact.occurredAt);
      if (outcome === 'failed' && failure !== null) return { status: 'failed', failure, common };
      const post = { externalId: externalId ?? '', permalink, publishedAt: publishedAt ?? fact.occurredAt };
      return { status: 'published', ...post, removedAt: null, ...noFollowUps, common };
    }
    case 'TargetOverdue':
      return { ...state, common: { ...common, overdue: true } };
    case 'TargetPlaceLapsed':
      return state;
    case 'TargetRemovedOnPlatform':
      return state.status === 'published' ? { ...state, removedAt: event.data.observedAt } : state;
    case 'TargetHandedToPlatform':
    case 'TargetUndoRequested':
    case 'TargetUndoFailed':
    case 'TargetNativeTimeChanged':
    case 'TargetNativeRevised':
    case 'TargetScheduleModeChanged':
      return evolveNative(state, event, fact);
    case 'TargetFirstCommentScheduled':
    case 'TargetFirstCommentStarted':
    case 'TargetFirstCommentPosted':
    case 'TargetFirstCommentFailed':
      return state.status === 'published' ? { ...state, firstComment: commentOf(event) } : state;
    case 'TargetAfterStepScheduled':
    case 'TargetAfterStepStarted':
    case 'TargetAfterStepCompleted':
    case 'TargetAfterStepFailed':
      return state.status === 'published' ? { ...state, afterSteps: evolveAfterStep(state.afterSteps, event) } : state;
  }
};

const noFollowUps = { firstComment: null, afterSteps: [] } as const;

type CommentEvent = Extract<TargetEvent, { type: `TargetFirstComment${string}` }>;

const commentOf = (event: CommentEvent): FirstComment | null => {
  if (event.type === 'TargetFirstCommentScheduled') {
    return { status: 'due', try: event.data.try, dueAt: event.data.dueAt };
  }
  return event.type === 'TargetFirstCommentStarted' ? { status: 'calling', ...event.data } : null;
};

const pending = (common: TargetCommon, retryAt: string | null = null): TargetState => ({
  status: 'pending',
  retryAt,
  common,
});

/** Nothing keeps the target beyond its time, as far as the service knows. */
const inTime = { deferredSince: null, overdue: false } as const;

/** The wait counts from the due time: a hand-over to the network's own scheduler may be deferred long before it. */
const deferredBy = (common: TargetCommon, { occurredAt }: Fact): TargetCommon => ({
  ...common,
  deferredSince: common.deferredSince ?? (occurredAt < common.dueAt ? common.dueAt : occurredAt),
});

/** A worker puts a target off behind its boundary only where it knows that the call made nothing. */
const withoutPost = (common: TargetCommon, boundary: TargetCheckpoint | null): TargetCommon =>
  boundary === null
    ? common
    : {
        ...common,
        checkpoints: common.checkpoints.map((one) => (one === boundary ? { ...one, madeNothing: true } : one)),
      };

/** What automatic attempts are limited by, before the first of them. */
const noAttempts = { rateLimits: 0, defers: 0, provenAbsences: 0, assumedAbsences: 0, unknownSince: null } as const;

/** A person who says that the post is not there has the target tried again, as a retry does. */
const absentBy = (
  by: Extract<TargetEvent, { type: 'TargetOutcomeSettled' }>['data']['by'],
  common: TargetCommon,
): TargetCommon => {
  if (by === 'admin') return { ...common, ...noAttempts };
  return by === 'reconcile'
    ? { ...common, provenAbsences: common.provenAbsences + 1 }
    : { ...common, assumedAbsences: common.assumedAbsences + 1 };
};

const scheduled = (data: Extract<TargetEvent, { type: 'TargetScheduled' }>['data'], fact: Fact): TargetState =>
  pending({
    ...data,
    bornAt: fact.occurredAt,
    knownAt: null,
    appliedRevision: data.postRevision,
    askedTime: null,
    attempts: 0,
    ...noAttempts,
    ...inTime,
    checkpoints: [],
    publishedSegments: [],
    appliedCommands: [],
  });

/** Each segment has as many attempts as a single post. */
const withSegment = (common: TargetCommon, post: NetworkPost): TargetCommon => ({
  ...common,
  ...noAttempts,
  deferredSince: null,
  publishedSegments: [...common.publishedSegments, postOf(post)],
});

const postOf = ({ externalId, permalink, publishedAt }: NetworkPost): NetworkPost => ({
  externalId,
  permalink,
  publishedAt,
});

/**
 * One destination of a post. Its law: at most one boundary is crossed per attempt, only by the worker whose claim
 * (attempt, takeover) is the newest; an outcome that stays unknown after the call is recorded as unknown. In a thread
 * each segment has a boundary of its own, which opens when the segment before it is out; a segment that is out stays
 * out through every later attempt.
 */

export { type AbsencePolicy, mayAssumeAbsence, nextLookAt } from './absence.ts';
export type { DueStep, FollowUps } from './after-steps.ts';
export type { RetryPolicy } from './outcome.ts';
export { deferredLimitMs, overdueAfterMs } from './overdue.ts';
export { movedTo, neededTimes, timesEver, timeWanted } from './places.ts';
export { isKnownSince, isListed, type Restore, wasDueBefore } from './restored.ts';
export { NotShifted, type ShiftSkipReason } from './shift.ts';
export {
  type AfterStep,
  attemptAt,
  type DueTime,
  type FirstComment,
  type FollowUp,
  isBeforeHandOver,
  isBeingCanceled,
  isCancelable,
  isHandOverOpen,
  isOpen,
  isRevisableAtNetwork,
  type NetworkPost,
  openStatuses,
  revisableStatuses,
  type ScheduledTarget,
  type SkipReason,
  skipReasonOf,
  type TargetCheckpoint,
  type TargetIn,
  type TargetState,
  TooLate,
} from './state.ts';

export type TargetCommand =
  | schedule.ScheduleTarget
  | schedule.Reschedule
  | shift.Shift
  | schedule.Cancel
  | schedule.Revise
  | schedule.Release
  | schedule.LapseApproval
  | schedule.Retry
  | schedule.Requeue
  | publish.Start
  | publish.RefuseAtClaim
  | publish.DeferAtClaim
  | publish.RecordCheckpoint
  | publish.TakeOver
  | outcome.RecordPublished
  | outcome.RecordFailed
  | outcome.RecordRateLimited
  | outcome.RecordDeferred
  | outcome.RecordHeld
  | outcome.RecordUnknown
  | processing.RecordAccepted
  | processing.RecordNotShown
  | restored.RecordRestored
  | outcome.RecordRemoved
  | firstComment.StartFirstComment
  | firstComment.RefuseFirstComment
  | firstComment.EndFirstComment
  | firstComment.LapseFirstComment
  | afterStep.StartAfterStep
  | afterStep.RefuseAfterStep
  | afterStep.EndAfterStep
  | native.FallBack
  | native.RecordOutsideWindow
  | native.RecordHandedOver
  | native.RecordNativeUnknown
  | native.RecordUndone
  | native.RecordTimeChanged
  | native.RecordRevised
  | native.RecordUndoFailed
  | overdue.RecordOverdue
  /** The place of a quota that the next append of this stream needs is given back. */
  | { readonly type: 'LapsePlace' }
  | absence.ObserveAbsence
  | Settle;

const decide = (command: TargetCommand, state: TargetState): readonly TargetEvent[] =>
  native.asCanceled(state, decided(command, state));

const decided = (command: TargetCommand, state: TargetState): readonly TargetEvent[] => {
  switch (command.type) {
    case 'Schedule':
      return schedule.schedule(command, state);
    case 'Reschedule':
      return schedule.reschedule(command, state);
    case 'Shift':
      return shift.shift(command, state);
    case 'Cancel':
      return schedule.cancel(command, state);
    case 'Revise':
      return schedule.revise(command, state);
    case 'Release':
      return schedule.release(command, state);
    case 'LapseApproval':
      return schedule.lapseApproval(command, state);
    case 'Retry':
      return schedule.retry(command, state);
    case 'Requeue':
      return schedule.requeue(command, state);
    case 'Start':
      return publish.start(command, state);
    case 'RefuseAtClaim':
      return publish.refuseAtClaim(command, state);
    case 'DeferAtClaim':
      return publish.deferAtClaim(command, state);
    case 'Checkpoint':
      return publish.checkpoint(command, state);
    case 'TakeOver':
      return publish.takeOver(command, state);
    case 'RecordPublished':
      return outcome.recordPublished(command, state);
    case 'RecordFailed':
      return outcome.recordFailed(command, state);
    case 'RecordRateLimited':
      return outcome.recordRateLimited(command, state);
    case 'RecordDeferred':
      return outcome.recordDeferred(command, state);
    case 'RecordHeld':
      return outcome.recordHeld(command, state);
    case 'RecordUnknown':
      return outcome.recordUnknown(command, state);
    case 'RecordAccepted':
      return processing.recordAccepted(command, state);
    case 'RecordNotShown':
      return processing.recordNotShown(command, state);
    case 'RecordRestored':
      return restored.recordRestored(command, state);
    case 'RecordRemoved':
      return outcome.recordRemoved(command, state);
    case 'StartFirstComment':
      return firstComment.startFirstComment(command, state);
    case 'RefuseFirstComment':
      return firstComment.refuseFirstComment(command, state);
    case 'EndFirstComment':
      return firstComment.endFirstComment(command, state);
    case 'LapseFirstComment':
      return firstComment.lapseFirstComment(command, state);
    case 'StartAfterStep':
      return afterStep.startAfterStep(command, state);
    case 'RefuseAfterStep':
      return afterStep.refuseAfterStep(command, state);
    case 'EndAfterStep':
      return afterStep.endAfterStep(command, state);
    case 'FallBack':
      return native.fallBack(command, state);
    case 'RecordOutsideWindow':
      return native.recordOutsideWindow(command, state);
    case 'RecordHandedOver':
      return native.recordHandedOver(command, state);
    case 'RecordNativeUnknown':
      return native.recordNativeUnknown(command, state);
    case 'RecordUndone':
      return native.recordUndone(command, state);
    case 'RecordTimeChanged':
      return native.recordTimeChanged(command, state);
    case 'RecordRevised':
      return native.recordRevised(command, state);
    case 'RecordUndoFailed':
      return native.recordUndoFailed(command, state);
    case 'RecordOverdue':
      return overdue.recordOverdue(command, state);
    case 'LapsePlace':
      return lapsePlace(state);
    case 'ObserveAbsence':
      return absence.observeAbsence(command, state);
    case 'Settle':
      return settle(command, state);
  }
};

export const target: Decider<TargetState, TargetCommand, TargetEvent> = { kind: 'target', initial, decide, evolve };
