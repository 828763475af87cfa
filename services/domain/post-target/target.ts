import type { TargetEvent } from '#schemas/target.ts';
import type { Decider } from '../decider.ts';
import * as absence from './absence.ts';
import { evolve } from './evolve.ts';
import * as firstComment from './first-comment.ts';
import * as native from './native.ts';
import * as outcome from './outcome.ts';
import * as overdue from './overdue.ts';
import { lapsePlace } from './places.ts';
import * as publish from './publish.ts';
import * as restored from './restored.ts';
import * as schedule from './schedule.ts';
import { type Settle, settle } from './settle.ts';
import * as shift from './shift.ts';
import { initial, type TargetState } from './state.ts';

/**
 * One destination of a post. Its law: at most one boundary is crossed per attempt, only by the worker whose claim
 * (attempt, takeover) is the newest; an outcome that stays unknown after the call is recorded as unknown. In a thread
 * each segment has a boundary of its own, which opens when the segment before it is out; a segment that is out stays
 * out through every later attempt.
 */

export { type AbsencePolicy, mayAssumeAbsence, nextLookAt } from './absence.ts';
export type { RetryPolicy } from './outcome.ts';
export { deferredLimitMs, overdueAfterMs } from './overdue.ts';
export { movedTo, neededTimes, timesEver, timeWanted } from './places.ts';
export { isKnownSince, isListed, type Restore, wasDueBefore } from './restored.ts';
export { NotShifted, type ShiftSkipReason } from './shift.ts';
export {
  attemptAt,
  type DueTime,
  type FirstComment,
  isBeforeHandOver,
  isBeingCanceled,
  isCancelable,
  isHandOverOpen,
  isOpen,
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
  | restored.RecordRestored
  | outcome.RecordRemoved
  | firstComment.StartFirstComment
  | firstComment.RefuseFirstComment
  | firstComment.EndFirstComment
  | firstComment.LapseFirstComment
  | native.FallBack
  | native.RecordOutsideWindow
  | native.RecordHandedOver
  | native.RecordNativeUnknown
  | native.RecordUndone
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
