import type { TargetEvent } from '#schemas/target.ts';
import { requireScheduled, type TargetState } from './state.ts';

/** Milliseconds after the time of its attempt at which an unfinished target is overdue. */
export const overdueAfterMs = 15 * 60_000;

/** The service looks for targets that nobody works off. */
export interface RecordOverdue {
  readonly type: 'RecordOverdue';
  readonly now: string;
}

/**
 * Records an overdue target once, until a person gives it another time or retries it. A held target and one with an
 * unknown outcome show their reason; a rate limit and a deferral do until the time that they name.
 */
export const recordOverdue = ({ now }: RecordOverdue, state: TargetState): readonly TargetEvent[] => {
  const target = requireScheduled(state);
  const { status, common } = target;
  const isUnfinished = status === 'pending' || status === 'publishing' || status === 'rate_limited';
  if (!isUnfinished && status !== 'handed_to_platform') return [];
  // A post for the network's own scheduler is handed over long before its time.
  const dueAt = (isUnfinished ? target.retryAt : null) ?? common.dueAt;
  if (common.overdue || Date.parse(now) < Date.parse(dueAt) + overdueAfterMs) return [];
  return [{ type: 'TargetOverdue', data: { dueAt } }];
};
