import type { Failure, Segment, TargetEvent } from '#schemas/target.ts';
import { Rejection } from '../decider.ts';
import { fallBack } from './native.ts';
import { attemptAt, type Claim, claimOf, requireClaim, type TargetState } from './state.ts';
import { failureOfThread, requireNextSegment } from './thread.ts';

/** A worker claims a target and records each step of its attempt before it takes the next. */

export interface Start {
  readonly type: 'Start';
  readonly now: string;
}

export const start = ({ now }: Start, state: TargetState): readonly TargetEvent[] => {
  if (state.status !== 'pending') throw new Rejection('not_claimable', `A ${state.status} target cannot be claimed.`);
  const at = attemptAt(state);
  if (at > now) throw new Rejection('not_due', `It is due at ${at}.`);
  if (fallBack({ type: 'FallBack', now }, state).length > 0) {
    throw new Rejection('too_late_to_hand_over', 'The network’s own scheduler takes no post for that time.');
  }
  return [{ type: 'TargetPublishStarted', data: { attempt: state.common.attempts + 1, takeover: 0 } }];
};

export interface RefuseAtClaim {
  readonly type: 'RefuseAtClaim';
  readonly failure: Failure;
  /** The failed segment of a thread; absent: the next one. */
  readonly segmentIndex?: number | undefined;
}

export const refuseAtClaim = ({ failure, segmentIndex }: RefuseAtClaim, state: TargetState): readonly TargetEvent[] => {
  if (state.status !== 'pending') throw new Rejection('not_claimable', `A ${state.status} target cannot be refused.`);
  const claim = { attempt: state.common.attempts + 1, takeover: 0 };
  return [{ type: 'TargetFailed', data: { ...claim, failure: failureOfThread(state, failure, segmentIndex) } }];
};

/** The account may not publish before `retryAt`: nothing was tried, so it counts as no deferral. */
export interface DeferAtClaim {
  readonly type: 'DeferAtClaim';
  readonly retryAt: string;
  readonly failure: Failure;
}

export const deferAtClaim = ({ retryAt, failure }: DeferAtClaim, state: TargetState): readonly TargetEvent[] => {
  if (state.status !== 'pending') throw new Rejection('not_claimable', `A ${state.status} target cannot be deferred.`);
  if (state.retryAt === retryAt) return [];
  const claim = { attempt: state.common.attempts + 1, takeover: 0 };
  return [{ type: 'TargetPublishDeferred', data: { ...claim, retryAt, failure } }];
};

export interface RecordCheckpoint extends Claim {
  readonly type: 'Checkpoint';
  readonly step: string;
  readonly data: unknown;
  readonly deadline: string | null;
  /** The segment of a thread that the step belongs to. */
  readonly segment?: Segment | null;
}

export const checkpoint = (command: RecordCheckpoint, state: TargetState): readonly TargetEvent[] => {
  const target = requireClaim(state, command);
  const { step, data, deadline, segment = null } = command;
  const isBoundary = step === 'boundary';
  if (isBoundary && target.boundary !== null) {
    throw new Rejection('boundary_crossed', 'This attempt has made its call already.');
  }
  if (isBoundary !== (deadline !== null)) {
    throw new Rejection('invalid_checkpoint', 'A boundary, and nothing else, has a deadline.');
  }
  requireNextSegment(target, segment?.index ?? 0);
  const which = segment === null ? {} : { segment };
  return [{ type: 'TargetPublishCheckpointed', data: { ...claimOf(target), step, data, deadline, ...which } }];
};

export interface TakeOver extends Claim {
  readonly type: 'TakeOver';
}

export const takeOver = (command: TakeOver, state: TargetState): readonly TargetEvent[] => {
  const { attempt, takeover } = claimOf(requireClaim(state, command));
  return [{ type: 'TargetPublishTakenOver', data: { attempt, takeover: takeover + 1 } }];
};
