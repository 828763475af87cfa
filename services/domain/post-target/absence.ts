import type { TargetEvent } from '#schemas/target.ts';
import { claimOf, notBefore, requireUnknown, settledBy, type TargetIn, type TargetState } from './state.ts';

/**
 * The rules of a client let a target be tried again after looks at the network that found no post; once, so that a network
 * that is wrong has two posts at most. If that attempt has no outcome either, a person decides.
 */

/** Attempts that the rules may assume to have published nothing. */
const maxAssumed = 1;

/** Whether the rules of the client may let the target be tried again. */
export const mayAssumeAbsence = ({ common }: TargetIn<'outcome_unknown'>): boolean =>
  common.assumedAbsences < maxAssumed;

export interface AbsencePolicy {
  /** Looks after which the target is tried again. */
  readonly looks: number;
  /** Milliseconds between two looks. */
  readonly gapMs: number;
}

/**
 * The network lists no such post. The command comes only while the rules of the client allow it, and only from a network
 * that lists an account's own posts completely, after its settle window.
 */
export interface ObserveAbsence {
  readonly type: 'ObserveAbsence';
  /** When the network was asked. */
  readonly askedAt: string;
  readonly policy: AbsencePolicy;
}

/**
 * Records one look. The looks are events with their instants, so a crash neither loses one that was recorded nor makes
 * two of one: a worker that looks again too soon records nothing.
 */
export const observeAbsence = ({ askedAt, policy }: ObserveAbsence, state: TargetState): readonly TargetEvent[] => {
  const target = requireUnknown(state);
  if (target.restored) return [];
  if (!mayAssumeAbsence(target) || Date.parse(askedAt) < nextLookAt(target.absences, policy)) return [];
  if (target.absences.length + 1 < policy.looks) {
    return [{ type: 'TargetAbsenceObserved', data: { ...claimOf(target), observedAt: askedAt } }];
  }
  const retryAt = notBefore(target, askedAt);
  return [settledBy('policy', { outcome: 'absent', ...(retryAt === askedAt ? {} : { retryAt }) })];
};

/** Milliseconds since the epoch from which another look counts. */
export const nextLookAt = (absences: readonly string[], { gapMs }: AbsencePolicy): number =>
  absences.reduce((latest, at) => Math.max(latest, Date.parse(at) + gapMs), Number.NEGATIVE_INFINITY);
