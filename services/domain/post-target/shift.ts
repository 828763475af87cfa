import type { TargetEvent, TargetTime } from '#schemas/target.ts';
import { Rejection } from '../decider.ts';
import { dueFault } from '../post/scheduling.ts';
import { daysLater, instantOf, localDaysLater } from '../zones.ts';
import { modeAt } from './native.ts';
import { openStatuses, requireScheduled, type SkipReason, skipReasonOf, type TargetState } from './state.ts';

/** A target moves with its campaign. */

export interface Shift {
  readonly type: 'Shift';
  readonly commandId: string;
  /** When the shift of the campaign was decided. */
  readonly now: string;
  /** Exactly one of the two has a value. Days keep the wall-clock time in the zone of the target. */
  readonly minutes: number | null;
  readonly days: number | null;
}

/** Why a shift passes over a target. */
export type ShiftSkipReason =
  | SkipReason
  | 'schedule_in_past'
  | 'schedule_too_far'
  | 'quota_exceeded'
  | 'cadence_exceeded';

/** Refuses a shift of one target; those beside it are moved. */
export class NotShifted extends Rejection {
  readonly reason: ShiftSkipReason;
  constructor(reason: ShiftSkipReason) {
    super('target_not_pending', `The target stays where it is: ${reason}.`);
    this.reason = reason;
  }
}

type Time = Pick<TargetTime, 'dueAt' | 'scheduledLocal' | 'jitterSeconds' | 'timezone'>;
type Moved = Pick<TargetTime, 'dueAt' | 'scheduledLocal' | 'jitterSeconds'>;

const plus = (instant: string, ms: number): string => new Date(Date.parse(instant) + ms).toISOString();

const moved = ({ dueAt, scheduledLocal, jitterSeconds, timezone }: Time, { minutes, days }: Shift): Moved => {
  if (days === null) return { dueAt: plus(dueAt, (minutes ?? 0) * 60_000), scheduledLocal: null, jitterSeconds };
  // The jitter is a delay behind the wall-clock time that was asked for.
  const jitterMs = jitterSeconds * 1_000;
  if (scheduledLocal !== null) {
    const local = localDaysLater(scheduledLocal, days);
    return { dueAt: plus(instantOf(local, timezone), jitterMs), scheduledLocal: local, jitterSeconds };
  }
  const base = daysLater(plus(dueAt, -jitterMs), timezone, days);
  return { dueAt: plus(base, jitterMs), scheduledLocal: null, jitterSeconds };
};

/** @throws NotShifted */
export const shift = (command: Shift, state: TargetState): readonly TargetEvent[] => {
  const target = requireScheduled(state);
  const { common } = target;
  if (common.appliedCommands.includes(command.commandId)) return [];
  const reason = skipReasonOf(target, openStatuses);
  if (reason !== null) throw new NotShifted(reason);
  const data = moved(common, command);
  if (data.dueAt === common.dueAt) return [];
  const fault = dueFault(data.dueAt, command.now);
  if (fault !== null) throw new NotShifted(fault);
  return [{ type: 'TargetRescheduled', data }, ...modeAt(common, data.dueAt, command.now)];
};
