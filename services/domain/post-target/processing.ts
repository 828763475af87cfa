import type { Failure, TargetEvent } from '#schemas/target.ts';
import { type Fact, Rejection } from '../decider.ts';
import { type Claim, claimOf, requireClaim, type TargetCheckpoint, type TargetIn, type TargetState } from './state.ts';

/**
 * The network accepted the post and does not show it yet. The law: an acceptance follows a boundary, and only the
 * network's word ends it; until then nobody cancels, moves or repeats the target. One that outlasts the network's own
 * limit is an unknown outcome, and never an acceptance again.
 */

type AcceptedData = Extract<TargetEvent, { type: 'TargetAcceptedByPlatform' }>['data'];
type Said = Pick<AcceptedData, 'handle' | 'askAt' | 'until'>;

/** The boundary of a call that may be accepted. A segment of a thread may not: the next one replies to its id. */
const boundaryOf = ({ boundary, common }: TargetIn<'publishing' | 'outcome_unknown'>): TargetCheckpoint | null =>
  boundary === null || boundary.segment !== null || common.scheduleMode === 'native' ? null : boundary;

const accepted = (
  target: TargetIn<'publishing' | 'outcome_unknown'>,
  { handle, askAt, until }: Said,
): readonly TargetEvent[] => [{ type: 'TargetAcceptedByPlatform', data: { ...claimOf(target), handle, askAt, until } }];

export interface RecordAccepted extends Claim, Said {
  readonly type: 'RecordAccepted';
}

export const recordAccepted = (command: RecordAccepted, state: TargetState): readonly TargetEvent[] => {
  const target = requireClaim(state, command);
  if (boundaryOf(target) === null) {
    throw new Rejection('no_boundary', 'No post was sent that the network shows by itself, so none was accepted.');
  }
  return accepted(target, command);
};

/**
 * The network says of an unknown outcome that it accepted the post. It stays unknown where the network had its time
 * already, or where the service was restored: of calls in the time that was lost nothing is known.
 */
export const foundAccepted = (target: TargetIn<'outcome_unknown'>, said: Said): readonly TargetEvent[] =>
  target.accepted !== null || target.restored || boundaryOf(target) === null ? [] : accepted(target, said);

/** The network has neither shown nor refused the post within its limit. */
export interface RecordNotShown {
  readonly type: 'RecordNotShown';
  readonly now: string;
  readonly failure: Failure;
  readonly reconcileAt: string;
}

/** A repeated command finds the outcome unknown. */
export const recordNotShown = (
  { now, failure, reconcileAt }: RecordNotShown,
  state: TargetState,
): readonly TargetEvent[] => {
  if (state.status !== 'processing' || now < state.accepted.until) return [];
  return [{ type: 'TargetOutcomeUnknown', data: { ...claimOf(state), failure, reconcileAt } }];
};

export const evolveAccepted = (state: TargetState, data: AcceptedData, { occurredAt }: Fact): TargetState => {
  if ((state.status !== 'publishing' && state.status !== 'outcome_unknown') || state.boundary === null) return state;
  const { takeover, boundary, common } = state;
  const { handle, askAt, until } = data;
  return {
    status: 'processing',
    takeover,
    boundary,
    accepted: { handle, acceptedAt: occurredAt, askAt, until },
    common: { ...common, deferredSince: null },
  };
};
