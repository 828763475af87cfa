import type { TargetEvent } from '#schemas/target.ts';
import { requireScheduled, type TargetState } from './state.ts';

/** Milliseconds after the time of its attempt at which an unfinished target is overdue. */
export const overdueAfterMs = 15 * 60_000;

/** Milliseconds that deferrals and rate limits may keep a target beyond its time, all together, before it is overdue. */
export const deferredLimitMs = 24 * 3_600_000;

/** The service looks for targets that no worker finishes, and for those that are rescheduled again and again. */
export interface RecordOverdue {
  readonly type: 'RecordOverdue';
  readonly now: string;
}

/**
 * Records an overdue target once, until a person gives it another time or retries it. A held target and one with an
 * unknown outcome show their reason; a rate limit and a deferral do until the time that they name, for a day together: then
 * a person must know that the target may never go out by itself.
 */
export const recordOverdue = ({ now }: RecordOverdue, state: TargetState): readonly TargetEvent[] => {
  const target = requireScheduled(state);
  const { status, common } = target;
  const { deferredSince } = common;
  const isUnfinished = status === 'pending' || status === 'publishing' || status === 'rate_limited';
  if (!isUnfinished && status !== 'handed_to_platform') return [];
  // A post for the network's own scheduler is handed over long before its time.
  const dueAt = (isUnfinished ? target.retryAt : null) ?? common.dueAt;
  if (common.overdue) return [];
  if (Date.parse(now) >= Date.parse(dueAt) + overdueAfterMs) return [{ type: 'TargetOverdue', data: { dueAt } }];
  const waits = status === 'pending' || status === 'rate_limited';
  if (!waits || deferredSince === null || Date.parse(now) < Date.parse(deferredSince) + deferredLimitMs) return [];
  return [{ type: 'TargetOverdue', data: { dueAt, deferredSince } }];
};
