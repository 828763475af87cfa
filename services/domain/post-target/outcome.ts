import type { Failure, Segment, TargetEvent } from '#schemas/target.ts';
import { Rejection } from '../decider.ts';
import { type FollowUps, followUpsOf } from './after-steps.ts';
import { tooLateToHandOver } from './native.ts';
import { type Claim, claimOf, type NetworkPost, requireClaim, type TargetIn, type TargetState } from './state.ts';
import { failureOfThread, segmentOut } from './thread.ts';

/** A worker records how its attempt ended. */

/** When the publisher repeats a failed attempt, and after how many attempts the target fails. */
export interface RetryPolicy {
  /** Milliseconds. After the last delay the target fails. */
  readonly deferDelaysMs: readonly number[];
  /** 0–1, drawn by the caller: a delay grows by this many tenths of itself. */
  readonly jitter: number;
  readonly maxRateLimits: number;
}

export interface RecordPublished extends Claim, NetworkPost, FollowUps {
  readonly type: 'RecordPublished';
  /** The published segment of a thread. */
  readonly segment?: Segment | null;
}

export const recordPublished = (command: RecordPublished, state: TargetState): readonly TargetEvent[] => {
  const target = requireClaim(state, command);
  const { externalId, permalink, publishedAt, segment = null } = command;
  if (target.boundary !== null && target.boundary.segment?.index !== segment?.index) {
    throw new Rejection('segment_out_of_turn', 'The boundary was crossed for another segment of the thread.');
  }
  const published = (post: NetworkPost): readonly TargetEvent[] => [
    { type: 'TargetPublished', data: { ...claimOf(target), ...post } },
    ...followUpsOf(command, post.externalId),
  ];
  const post = { externalId, permalink, publishedAt };
  if (segment === null) return published(post);
  const { event, head } = segmentOut(target, segment, post);
  return head === null ? [event] : [event, ...published(head)];
};

export interface RecordFailed extends Claim {
  readonly type: 'RecordFailed';
  readonly failure: Failure;
  /** The failed segment of a thread; absent: the next one. */
  readonly segmentIndex?: number | undefined;
}

export const recordFailed = (command: RecordFailed, state: TargetState): readonly TargetEvent[] => [
  failedWith(requireClaim(state, command), command.failure, command.segmentIndex),
];

const failedWith = (target: TargetIn<'publishing'>, failure: Failure, segmentIndex?: number): TargetEvent => ({
  type: 'TargetFailed',
  data: { ...claimOf(target), failure: failureOfThread(target, failure, segmentIndex) },
});

export interface RecordRateLimited extends Claim {
  readonly type: 'RecordRateLimited';
  readonly retryAt: string;
  readonly failure: Failure;
  readonly policy: RetryPolicy;
}

export const recordRateLimited = (command: RecordRateLimited, state: TargetState): readonly TargetEvent[] => {
  const target = requireClaim(state, command);
  const { retryAt, failure, policy } = command;
  const mayRepeat = target.common.rateLimits < policy.maxRateLimits;
  const late = tooLateToHandOver(target, failure, mayRepeat ? retryAt : null, retryAt);
  if (late !== null) return late;
  if (!mayRepeat) return [failedWith(target, failure)];
  return [{ type: 'TargetRateLimited', data: { ...claimOf(target), retryAt, failure } }];
};

/** A transient failure before the boundary, or of a boundary call that left nothing at the network. */
export interface RecordDeferred extends Claim {
  readonly type: 'RecordDeferred';
  /** The worker is certain that its boundary call made nothing. Absent: it made no such call. */
  readonly nothingSent?: true;
  readonly now: string;
  readonly failure: Failure;
  readonly policy: RetryPolicy;
}

export const recordDeferred = (command: RecordDeferred, state: TargetState): readonly TargetEvent[] => {
  const target = requireClaim(state, command);
  if (target.boundary !== null && command.nothingSent !== true) {
    throw new Rejection('boundary_crossed', 'After the call only reconcile may tell its outcome.');
  }
  const { now, failure, policy } = command;
  const delay = policy.deferDelaysMs[target.common.defers];
  const retryAt =
    delay === undefined ? null : new Date(Date.parse(now) + delay * (1 + policy.jitter / 10)).toISOString();
  const late = tooLateToHandOver(target, failure, retryAt, now);
  if (late !== null) return late;
  if (retryAt === null) return [failedWith(target, failure)];
  return [{ type: 'TargetPublishDeferred', data: { ...claimOf(target), retryAt, failure } }];
};

/** Publishing is held, or the network rests, and the worker gives its claim back: nothing was made, and no try is used up. */
export interface RecordHeld extends Claim {
  readonly type: 'RecordHeld';
  readonly now: string;
  /** One that uses up no try. */
  readonly failure: Failure;
  /** The network said to the call that it does nothing. Absent: there was no call. */
  readonly nothingSent?: true;
}

/** The target keeps its place in the order of what is due: it goes out at the time of the attempt, once it may. */
export const recordHeld = (command: RecordHeld, state: TargetState): readonly TargetEvent[] => {
  const target = requireClaim(state, command);
  if (target.boundary !== null && command.nothingSent !== true) {
    throw new Rejection('boundary_crossed', 'After the call only reconcile may tell its outcome.');
  }
  const { now, failure } = command;
  const isNative = target.common.scheduleMode === 'native';
  const retryAt = isNative ? now : (target.retryAt ?? target.common.dueAt);
  const late = tooLateToHandOver(target, failure, retryAt, now);
  if (late !== null) return late;
  return [{ type: 'TargetPublishDeferred', data: { ...claimOf(target), retryAt, failure } }];
};

export interface RecordUnknown extends Claim {
  readonly type: 'RecordUnknown';
  readonly failure: Failure;
  readonly reconcileAt: string;
}

export const recordUnknown = (command: RecordUnknown, state: TargetState): readonly TargetEvent[] => {
  const target = requireClaim(state, command);
  if (target.boundary === null) throw new Rejection('no_boundary', 'Nothing was called, so its outcome is known.');
  const { failure, reconcileAt } = command;
  return [{ type: 'TargetOutcomeUnknown', data: { ...claimOf(target), failure, reconcileAt } }];
};

/** The network no longer has the post. */
export interface RecordRemoved {
  readonly type: 'RecordRemoved';
  /** By the network's clock. */
  readonly observedAt: string;
}

export const recordRemoved = ({ observedAt }: RecordRemoved, state: TargetState): readonly TargetEvent[] => {
  if (state.status !== 'published' || state.removedAt !== null) return [];
  return [{ type: 'TargetRemovedOnPlatform', data: { observedAt } }];
};
