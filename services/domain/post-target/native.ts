import type { Failure, TargetEvent, TargetTime } from '#schemas/target.ts';
import { type Fact, Rejection } from '../decider.ts';
import {
  closesAt,
  isUndoable,
  managed,
  revisedMode,
  type ScheduleModeReason,
  timeReason,
  type WantedMode,
} from '../post/scheduling.ts';
import { undoTooLate } from '../publish-failures.ts';
import {
  applied,
  type CancelRequest,
  type Claim,
  claimOf,
  isRevisableAtNetwork,
  remember,
  requireClaim,
  type TargetCommon,
  type TargetIn,
  type TargetState,
  TooLate,
  tooLateToBe,
  type UndoRequest,
} from './state.ts';

/**
 * A target that is handed to the network's own scheduler. The law: the hand-over is a publish boundary, so a lost answer
 * is asked after and never repeated on a guess. A post that the network has is canceled only after it was deleted
 * there, and moved or revised only after that, or after the network said that it publishes the same post at the new time or
 * with the new content; what it published meanwhile is published. A cancel that comes during the call, or after its
 * answer was lost, is an event before the answer's: whichever worker records the answer, the post is taken back, or the
 * target is canceled where the network has none. A target that has become managed is never handed over again, except by
 * a revision.
 */

type Handed = TargetIn<'handed_to_platform'>;

/** Of a target that is native until now. */
const becomesManaged = (reason: ScheduleModeReason): TargetEvent => ({
  type: 'TargetScheduleModeChanged',
  data: managed(reason),
});

/** A native target stays native at its new time, if the network's scheduler takes a post of that time. */
export const modeAt = (common: TargetCommon, dueAt: string, now: string): readonly TargetEvent[] => {
  const reason = common.scheduleMode === 'native' ? timeReason(common.platform, dueAt, now) : null;
  return reason === null ? [] : [becomesManaged(reason)];
};

/** Too little time is left to hand the target over: this service publishes it at its time. */
export interface FallBack {
  readonly type: 'FallBack';
  readonly now: string;
}

export const fallBack = ({ now }: FallBack, state: TargetState): readonly TargetEvent[] =>
  state.status === 'pending' ? modeAt(state.common, state.common.dueAt, now) : [];

/** The target waits for its own time, without the network's scheduler. */
const managedAfter = (
  target: TargetIn<'publishing'>,
  failure: Failure,
  notBefore: string,
  reason: ScheduleModeReason,
): readonly TargetEvent[] => {
  const { dueAt } = target.common;
  const retryAt = notBefore > dueAt ? notBefore : dueAt;
  return [{ type: 'TargetPublishDeferred', data: { ...claimOf(target), retryAt, failure } }, becomesManaged(reason)];
};

/** Why a hand-over is not made again at `retryAt`; null: it is. @param retryAt null: it may not be made again */
const handOverEnds = ({ platform, dueAt }: TargetCommon, retryAt: string | null): ScheduleModeReason | null => {
  if (retryAt === null) return 'network_unavailable';
  return retryAt > closesAt(platform, dueAt) ? 'outside_native_window' : null;
};

/** Null: the attempt of which the network proved that it made nothing was no hand-over, or is made again in time. */
export const managedAfterAbsence = (common: TargetCommon, retryAt: string | null): TargetEvent | null => {
  const reason = common.scheduleMode === 'native' ? handOverEnds(common, retryAt) : null;
  return reason === null ? null : becomesManaged(reason);
};

/**
 * The events of an attempt to hand over that may be made again at `retryAt`; null: the attempt is no hand-over, or it may
 * be made again in time.
 * @param retryAt null: the attempt may not be made again
 */
export const tooLateToHandOver = (
  target: TargetIn<'publishing'>,
  failure: Failure,
  retryAt: string | null,
  notBefore: string,
): readonly TargetEvent[] | null => {
  if (target.common.scheduleMode === 'managed') return null;
  const reason = handOverEnds(target.common, retryAt);
  return reason === null ? null : managedAfter(target, failure, notBefore, reason);
};

/** The network refused the time of the post, and made nothing. */
export interface RecordOutsideWindow extends Claim {
  readonly type: 'RecordOutsideWindow';
  readonly now: string;
  readonly failure: Failure;
}

export const recordOutsideWindow = (command: RecordOutsideWindow, state: TargetState): readonly TargetEvent[] => {
  const target = requireClaim(state, command);
  return managedAfter(target, command.failure, command.now, 'outside_native_window');
};

export interface RecordHandedOver extends Claim {
  readonly type: 'RecordHandedOver';
  readonly nativeId: string;
}

export const recordHandedOver = (command: RecordHandedOver, state: TargetState): readonly TargetEvent[] => {
  const target = requireClaim(state, command);
  if (target.boundary === null) throw new Rejection('no_boundary', 'Nothing was called, so nothing was handed over.');
  return handedOver(target, command);
};

export const handedOver = (
  target: TargetIn<'publishing'> | TargetIn<'outcome_unknown'>,
  { nativeId }: Pick<RecordHandedOver, 'nativeId'>,
): readonly TargetEvent[] => [
  { type: 'TargetHandedToPlatform', data: { ...claimOf(target), nativeId, dueAt: target.common.dueAt } },
];

/**
 * What the answer to a hand-over comes to where the target was canceled meanwhile. What the network has is taken back
 * by the next worker, and what it published is published; where it has nothing, no attempt follows.
 * @param events those of the answer
 */
export const asCanceled = (state: TargetState, events: readonly TargetEvent[]): readonly TargetEvent[] => {
  if (state.status !== 'publishing' && state.status !== 'outcome_unknown') return events;
  const { undo } = state;
  if (undo === null) return events;
  const { then, reason, postRevision } = undo;
  if (events.some(isOut)) return [{ type: 'TargetUndoFailed', data: { then, failure: undoTooLate } }, ...events];
  return events.some(isWithoutPost) ? [{ type: 'TargetCanceled', data: { reason, postRevision } }] : events;
};

const isOut = ({ type, data }: TargetEvent): boolean =>
  type === 'TargetPublished' || (type === 'TargetOutcomeSettled' && data.outcome === 'published');

const isWithoutPost = ({ type }: TargetEvent): boolean =>
  type === 'TargetFailed' ||
  type === 'TargetRateLimited' ||
  type === 'TargetPublishDeferred' ||
  type === 'TargetOutcomeSettled';

/** The network has published the post, or never will: an undo that is under way has failed. */
const undoFailed = ({ undo }: Handed, failure: Failure): readonly TargetEvent[] =>
  undo === null ? [] : [{ type: 'TargetUndoFailed', data: { then: undo.then, failure } }];

/**
 * @param settled the outcome at the network
 * @param publishedAt null: it publishes nothing
 */
export const settleHandedOver = (
  target: Handed,
  settled: TargetEvent,
  publishedAt: string | null,
): readonly TargetEvent[] => {
  const { undo, common } = target;
  const apart = (dueAt: string) => Math.abs(Date.parse(publishedAt ?? '') - Date.parse(dueAt));
  // The network had taken the new time, and its answer was lost.
  const isMoved = undo?.then === 'reschedule' && apart(undo.dueAt) < apart(common.dueAt);
  return [...(isMoved ? timeChanged(target, undo) : undoFailed(target, undoTooLate)), settled];
};

/** The due time has passed, and the network does not say what became of the post. */
export interface RecordNativeUnknown {
  readonly type: 'RecordNativeUnknown';
  readonly failure: Failure;
  readonly reconcileAt: string;
}

export const recordNativeUnknown = (
  { failure, reconcileAt }: RecordNativeUnknown,
  state: TargetState,
): readonly TargetEvent[] => {
  if (state.status !== 'handed_to_platform') return [];
  const unknown = { ...claimOf(state), failure, reconcileAt };
  return [...undoFailed(state, failure), { type: 'TargetOutcomeUnknown', data: unknown }];
};

type UndoData = Extract<TargetEvent, { type: 'TargetUndoRequested' }>['data'];
const nothing: Omit<UndoData, 'then'> = {
  reason: null,
  postRevision: null,
  dueAt: null,
  scheduledLocal: null,
  jitterSeconds: null,
};

type Unanswered = TargetIn<'publishing' | 'outcome_unknown'>;

const requireUndoable = ({ status, common }: Handed | Unanswered, now: string): void => {
  if (!isUndoable(common.dueAt, now)) {
    throw new TooLate(status, 'The network publishes the target too soon to take it back.');
  }
};

type Canceling = Pick<CancelRequest, 'reason' | 'postRevision'> & { readonly now: string };

export const undoToCancel = (
  target: Handed | Unanswered,
  { reason, postRevision, now }: Canceling,
): readonly TargetEvent[] => {
  if (target.undo?.then === 'cancel') return [];
  requireUndoable(target, now);
  return [{ type: 'TargetUndoRequested', data: { ...nothing, then: 'cancel', reason, postRevision } }];
};

export const undoToReschedule = (
  target: Handed,
  wanted: {
    readonly dueAt: string;
    readonly scheduledLocal: string | null;
    readonly jitterSeconds: number;
    readonly now: string;
  },
): readonly TargetEvent[] => {
  const { undo, common } = target;
  if (undo?.then === 'cancel') throw new Rejection('target_not_pending', 'The target is about to be canceled.');
  const { dueAt, scheduledLocal, jitterSeconds, now } = wanted;
  const present = undo ?? common;
  if (present.dueAt === dueAt && present.jitterSeconds === jitterSeconds) return [];
  requireUndoable(target, now);
  const time = { dueAt, scheduledLocal, jitterSeconds };
  // The content that is wanted is wanted at the new time.
  if (undo?.then === 'revise') return [{ type: 'TargetUndoRequested', data: reviseData({ ...undo, ...time }) }];
  return [{ type: 'TargetUndoRequested', data: { ...nothing, then: 'reschedule', ...time } }];
};

const reviseData = ({
  postRevision,
  timezone,
  scheduleMode,
  scheduleModeReason,
  ...time
}: TargetTime & { readonly postRevision: number }): UndoData => {
  const { dueAt, scheduledLocal, jitterSeconds } = time;
  const revised = { timezone, scheduleMode, scheduleModeReason };
  return { then: 'revise', reason: null, postRevision, dueAt, scheduledLocal, jitterSeconds, revised };
};

/** What a revise of the post wants of a target. */
export interface Revision {
  /** Revision of the post that holds the content. */
  readonly postRevision: number;
  /** Null: the target keeps its time. */
  readonly time: TargetTime | null;
  /** What the revised post wants of the network's scheduler; absent: as before. */
  readonly mode?: WantedMode;
  /** When a failed target is due whose time has passed, or which is handed over to the network's scheduler. */
  readonly now: string;
  /** The revised content needs an approval: the target is held in the same append. */
  readonly held?: boolean;
}

/**
 * The network gets the content that nobody has to approve any more. What an approval is asked for passes over the target, as it
 * would where the target is out: the network has the content that was approved.
 * @throws TooLate
 */
export const undoToRevise = (
  target: Handed,
  { postRevision, time, mode, now, held = false }: Revision,
): readonly TargetEvent[] => {
  const { undo, common } = target;
  if (held || !isRevisableAtNetwork(target, now)) throw tooLateToBe('revised', target.status);
  const present = undo === null || undo.then === 'cancel' ? common : { ...common, ...timeOfUndo(undo) };
  const wanted = time ?? (mode === undefined ? present : { ...present, ...revisedMode(present, mode, now) });
  return [{ type: 'TargetUndoRequested', data: reviseData({ ...wanted, postRevision }) }];
};

const timeOfUndo = ({ dueAt, scheduledLocal, jitterSeconds }: Exclude<UndoRequest, { then: 'cancel' }>) => ({
  ...{ dueAt, scheduledLocal, jitterSeconds },
});

/** The network no longer has the scheduled post, and did not publish it. */
export interface RecordUndone {
  readonly type: 'RecordUndone';
  readonly now: string;
}

export const recordUndone = ({ now }: RecordUndone, state: TargetState): readonly TargetEvent[] => {
  if (state.status !== 'handed_to_platform' || state.undo === null) return [];
  const { undo, common } = state;
  if (undo.then === 'cancel') {
    const { reason, postRevision } = undo;
    return [{ type: 'TargetCanceled', data: { reason, postRevision } }];
  }
  const { dueAt, scheduledLocal, jitterSeconds } = undo;
  if (undo.then === 'revise') {
    const { postRevision, scheduleMode } = undo;
    const revised: TargetEvent = { type: 'TargetRevised', data: { postRevision, ...targetTimeOf(undo) } };
    return [revised, ...modeAt({ ...common, scheduleMode }, dueAt, now)];
  }
  return [{ type: 'TargetRescheduled', data: { dueAt, scheduledLocal, jitterSeconds } }, ...modeAt(common, dueAt, now)];
};

const targetTimeOf = (one: TargetTime): TargetTime => {
  const { dueAt, scheduledLocal, timezone, jitterSeconds, scheduleMode, scheduleModeReason } = one;
  return { dueAt, scheduledLocal, timezone, jitterSeconds, scheduleMode, scheduleModeReason };
};

/** The network said that it publishes the scheduled post with the content and at the time that are wanted. */
export interface RecordRevised {
  readonly type: 'RecordRevised';
  /** What it was told. */
  readonly postRevision: number;
  readonly dueAt: string;
}

export const recordRevised = ({ postRevision, dueAt }: RecordRevised, state: TargetState): readonly TargetEvent[] => {
  if (state.status !== 'handed_to_platform' || state.undo?.then !== 'revise') return [];
  const { undo, nativeId } = state;
  // Something else is wanted since: it is told to the network next.
  if (undo.postRevision !== postRevision || undo.dueAt !== dueAt) return [];
  const data = { ...claimOf(state), nativeId, postRevision, ...targetTimeOf(undo) };
  return [{ type: 'TargetNativeRevised', data }];
};

/** The network said that it publishes the scheduled post at the time that is wanted. */
export interface RecordTimeChanged {
  readonly type: 'RecordTimeChanged';
  /** The time that it was told. */
  readonly dueAt: string;
}

export const recordTimeChanged = ({ dueAt }: RecordTimeChanged, state: TargetState): readonly TargetEvent[] => {
  if (state.status !== 'handed_to_platform' || state.undo?.then !== 'reschedule') return [];
  return state.undo.dueAt === dueAt ? timeChanged(state, state.undo) : [];
};

const timeChanged = (
  target: Handed,
  { dueAt, scheduledLocal, jitterSeconds }: Extract<UndoRequest, { then: 'reschedule' }>,
): readonly TargetEvent[] => {
  const { nativeId } = target;
  const data = { ...claimOf(target), nativeId, dueAt, scheduledLocal, jitterSeconds };
  return [{ type: 'TargetNativeTimeChanged', data }];
};

/** The network refused to delete the scheduled post, or to move it: it publishes it at its time. */
export interface RecordUndoFailed {
  readonly type: 'RecordUndoFailed';
  readonly failure: Failure;
}

export const recordUndoFailed = ({ failure }: RecordUndoFailed, state: TargetState): readonly TargetEvent[] =>
  state.status === 'handed_to_platform' ? undoFailed(state, failure) : [];

type NativeEvent = Extract<
  TargetEvent,
  {
    type:
      | 'TargetHandedToPlatform'
      | 'TargetUndoRequested'
      | 'TargetUndoFailed'
      | 'TargetNativeTimeChanged'
      | 'TargetNativeRevised'
      | 'TargetScheduleModeChanged';
  }
>;

export const evolveNative = (
  state: Exclude<TargetState, { status: 'none' }>,
  event: NativeEvent,
  fact: Fact,
): TargetState => {
  const { common } = state;
  switch (event.type) {
    case 'TargetScheduleModeChanged': {
      // A managed attempt has its own counts: those of the hand-over were another call.
      const counts = event.data.scheduleMode === 'managed' ? { rateLimits: 0, defers: 0, provenAbsences: 0 } : {};
      const changed = { ...state, common: { ...common, ...event.data, ...counts } };
      // A hand-over is tried again before the due time; a managed attempt then would be a post that goes out early.
      const early =
        event.data.scheduleMode === 'managed' &&
        changed.status === 'pending' &&
        changed.retryAt !== null &&
        changed.retryAt < common.dueAt;
      return early ? { ...changed, retryAt: null } : changed;
    }
    case 'TargetHandedToPlatform': {
      if (state.status !== 'publishing' && state.status !== 'outcome_unknown') return state;
      const { takeover, boundary, undo } = state;
      const { nativeId } = event.data;
      // A later attempt makes another post: it must not use what this one was made with.
      return {
        status: 'handed_to_platform',
        takeover,
        nativeId,
        boundary,
        undo,
        otherTimes: [],
        otherContents: [],
        common: { ...common, checkpoints: [], deferredSince: null },
      };
    }
    case 'TargetUndoRequested': {
      const undo = undoOf(event.data, common, fact);
      const asked = remember(applied(common, event.data.postRevision ?? 0), fact);
      if (state.status === 'handed_to_platform') {
        const times = undo.then === 'cancel' ? [] : [undo.dueAt];
        const contents = undo.then === 'revise' ? [undo.postRevision] : [];
        return {
          ...{ ...state, undo, common: asked },
          otherTimes: [...new Set([...state.otherTimes, ...times])],
          otherContents: [...new Set([...state.otherContents, ...contents])],
        };
      }
      if (state.status !== 'publishing' && state.status !== 'outcome_unknown') return state;
      return undo.then === 'cancel' ? { ...state, undo, common: asked } : state;
    }
    case 'TargetNativeTimeChanged': {
      if (state.status !== 'handed_to_platform') return state;
      const { dueAt, scheduledLocal, jitterSeconds } = event.data;
      const moved = { dueAt, scheduledLocal, jitterSeconds, askedTime: null, deferredSince: null, overdue: false };
      return { ...state, undo: null, otherTimes: [], common: { ...common, ...moved } };
    }
    case 'TargetNativeRevised': {
      if (state.status !== 'handed_to_platform') return state;
      const { postRevision } = event.data;
      const moved = { ...targetTimeOf(event.data), askedTime: null, deferredSince: null, overdue: false };
      const revised = { ...applied(common, postRevision), postRevision, ...moved };
      return { ...state, undo: null, otherTimes: [], otherContents: [], common: revised };
    }
    case 'TargetUndoFailed':
      if (state.status === 'handed_to_platform') return { ...state, undo: null };
      return state.status === 'publishing' || state.status === 'outcome_unknown' ? { ...state, undo: null } : state;
  }
};

const undoOf = (data: UndoData, common: TargetCommon, { occurredAt: requestedAt }: Fact): UndoRequest => {
  const { reason, postRevision, scheduledLocal, revised } = data;
  if (data.then === 'cancel') return { requestedAt, then: 'cancel', reason: reason ?? 'requested', postRevision };
  const time = { dueAt: data.dueAt ?? common.dueAt, scheduledLocal, jitterSeconds: data.jitterSeconds ?? 0 };
  if (data.then === 'reschedule') return { requestedAt, then: 'reschedule', ...time };
  const { timezone, scheduleMode, scheduleModeReason } = revised ?? common;
  const others = { timezone, scheduleMode, scheduleModeReason };
  return { requestedAt, then: 'revise', postRevision: postRevision ?? common.postRevision, ...others, ...time };
};
