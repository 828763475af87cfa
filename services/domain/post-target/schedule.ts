import type { PlannedTarget, TargetEvent } from '#schemas/target.ts';
import { Rejection } from '../decider.ts';
import { revisedMode, timeReason } from '../post/scheduling.ts';
import { modeAt, type Revision, undoToCancel, undoToReschedule, undoToRevise } from './native.ts';
import {
  type CancelReason,
  isBeforeHandOver,
  isHandOverOpen,
  openStatuses,
  requireScheduled,
  revisableStatuses,
  type ScheduledTarget,
  settledBy,
  skipReasonOf,
  type TargetCommon,
  type TargetState,
  tooLateToBe,
} from './state.ts';

/** Commands that set or change the time or the content of a target, or cancel it. */

export interface ScheduleTarget {
  readonly type: 'Schedule';
  readonly planned: PlannedTarget;
  readonly postId: string;
  readonly postRevision: number;
  /** The target waits for the approval of its post from its first append on. */
  readonly held?: boolean;
}

export const schedule = (
  { planned, postId, postRevision, held = false }: ScheduleTarget,
  state: TargetState,
): readonly TargetEvent[] => {
  if (state.status !== 'none') return [];
  const scheduled: TargetEvent = { type: 'TargetScheduled', data: { ...planned, postId, postRevision } };
  return held ? [scheduled, { type: 'TargetHeld', data: { postRevision } }] : [scheduled];
};

export interface Reschedule {
  readonly type: 'Reschedule';
  readonly commandId: string;
  readonly now: string;
  readonly dueAt: string;
  readonly scheduledLocal: string | null;
  readonly jitterSeconds: number;
}

export const reschedule = (command: Reschedule, state: TargetState): readonly TargetEvent[] => {
  const target = requireScheduled(state);
  const { common } = target;
  if (common.appliedCommands.includes(command.commandId)) return [];
  if (target.status === 'handed_to_platform') return undoToReschedule(target, command);
  requireOpen(target, 'rescheduled');
  const { dueAt, scheduledLocal, jitterSeconds, now } = command;
  const retryAt = target.status === 'pending' || target.status === 'rate_limited' ? target.retryAt : null;
  if (retryAt === null && common.dueAt === dueAt && common.jitterSeconds === jitterSeconds) return [];
  return [{ type: 'TargetRescheduled', data: { dueAt, scheduledLocal, jitterSeconds } }, ...modeAt(common, dueAt, now)];
};

export interface Cancel {
  readonly type: 'Cancel';
  readonly reason: CancelReason;
  readonly postRevision: number | null;
  readonly now: string;
}

export const cancel = (command: Cancel, state: TargetState): readonly TargetEvent[] => {
  const { reason, postRevision } = command;
  const target = requireScheduled(state);
  if (target.status === 'canceled') return [];
  if (target.status === 'handed_to_platform' || isHandOverOpen(target)) return undoToCancel(target, command);
  // The append takes the worker's claim: it cannot record the boundary any more, and so makes no call.
  if (!isBeforeHandOver(target)) requireOpen(target, 'canceled');
  return [{ type: 'TargetCanceled', data: { reason, postRevision } }];
};

const requireOpen = (target: ScheduledTarget, change: 'rescheduled' | 'canceled'): void => {
  const reason = skipReasonOf(target, openStatuses);
  if (reason !== null) throw tooLateToBe(change, reason);
};

/** Carries out a revise of the post. */
export interface Revise extends Revision {
  readonly type: 'Revise';
}

/** @throws TooLate */
export const revise = (command: Revise, state: TargetState): readonly TargetEvent[] => {
  const target = requireScheduled(state);
  const { common, status } = target;
  const { postRevision, now, held = false } = command;
  if (common.appliedRevision >= postRevision) return [];
  if (target.status === 'handed_to_platform') return undoToRevise(target, command);
  const reason = skipReasonOf(target, revisableStatuses);
  if (reason !== null) throw tooLateToBe('revised', reason);
  const { dueAt, scheduledLocal, timezone, jitterSeconds, scheduleMode, scheduleModeReason } =
    command.time ?? (command.mode === undefined ? common : { ...common, ...revisedMode(common, command.mode, now) });
  const time = { dueAt, scheduledLocal, timezone, jitterSeconds, scheduleMode, scheduleModeReason };
  const revised: TargetEvent = { type: 'TargetRevised', data: { postRevision, ...time } };
  // One append: a failed target with the new content always has its new attempt too.
  if (held) return [revised, { type: 'TargetHeld', data: { postRevision } }];
  if (status !== 'failed') return [revised];
  // A hand-over is made at once while the network's scheduler takes the post.
  const handsOver = scheduleMode === 'native' && timeReason(common.platform, dueAt, now) === null;
  const next = handsOver || dueAt < now ? now : dueAt;
  return [revised, { type: 'TargetRequeued', data: { by: 'revise', dueAt: next } }];
};

/** The due search found a held target whose time has come. */
export interface LapseApproval {
  readonly type: 'LapseApproval';
  readonly now: string;
}

/** Only a retry or a revise brings a lapsed target back, also where the post is approved later. */
export const lapseApproval = ({ now }: LapseApproval, state: TargetState): readonly TargetEvent[] => {
  const { status, common } = requireScheduled(state);
  return status === 'awaiting_approval' && isLate(common, now) ? [lapsed(common)] : [];
};

const isLate = ({ approvalLate, dueAt }: TargetCommon, now: string): boolean => approvalLate === 'fail' && dueAt <= now;

const lapsed = ({ dueAt }: TargetCommon): TargetEvent => ({ type: 'TargetApprovalLapsed', data: { dueAt } });

/** Carries out the release of the post: what was held goes out at its time, or at once where that has passed. */
export interface Release {
  readonly type: 'Release';
  readonly postRevision: number;
  /** When the post was released. */
  readonly now: string;
}

/** @throws TooLate */
export const release = ({ postRevision, now }: Release, state: TargetState): readonly TargetEvent[] => {
  const target = requireScheduled(state);
  const { common } = target;
  // A target that was held anew since needs another release.
  if (common.appliedRevision >= postRevision) return [];
  const reason = skipReasonOf(target, ['awaiting_approval']);
  if (reason !== null) throw tooLateToBe('released', reason);
  if (isLate(common, now)) return [lapsed(common)];
  const dueAt = common.dueAt < now ? now : common.dueAt;
  return [{ type: 'TargetReleased', data: { postRevision, dueAt } }, ...modeAt(common, dueAt, now)];
};

/** A person retries the target. */
export interface Retry {
  readonly type: 'Retry';
  readonly commandId: string;
  readonly now: string;
  /** Of the content that the caller may send out: one that came since may wait for an approval. Absent: any. */
  readonly postRevision?: number;
  /** A person has looked at the account: a target whose outcome is unknown since a restore is not out. */
  readonly isNotOut?: boolean;
}

export const retry = (
  { commandId, now, postRevision, isNotOut = false }: Retry,
  state: TargetState,
): readonly TargetEvent[] => {
  const { common, status } = requireScheduled(state);
  if (common.appliedCommands.includes(commandId)) return [];
  const isLost = state.status === 'outcome_unknown' && state.restored && isNotOut;
  if (status !== 'failed' && status !== 'rate_limited' && !isLost) {
    throw new Rejection('target_not_retryable', `A ${status} target cannot be retried.`);
  }
  if (postRevision !== undefined && common.postRevision !== postRevision) {
    throw new Rejection('target_not_retryable', 'The target has another content since.');
  }
  const managed = modeAt(common, common.dueAt, now);
  // What was to be handed over and can no longer be is published at its time, not before.
  const dueAt = managed.length > 0 && common.dueAt > now ? common.dueAt : now;
  return [
    ...(isLost ? [settledBy('admin', { outcome: 'absent' })] : []),
    { type: 'TargetRequeued', data: { by: 'retry', dueAt } },
    ...managed,
  ];
};

/** The publisher requeues the target when the network allows a retry. */
export interface Requeue {
  readonly type: 'Requeue';
  readonly now: string;
}

export const requeue = ({ now }: Requeue, state: TargetState): readonly TargetEvent[] => {
  if (state.status !== 'rate_limited') return [];
  if (state.retryAt > now) throw new Rejection('not_due', `It may be retried at ${state.retryAt}.`);
  return [{ type: 'TargetRequeued', data: { by: 'schedule', dueAt: now } }];
};
