import type { Schedule } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import type { RecycleRun, RecycleSettings, RecycleThen } from './post-recycle.ts';
import { recycleLeadMs } from './post-recycle.ts';
import type { WishedTime } from './scheduling.ts';
import { daysLater, instantOf, localDaysLater } from './zones.ts';

/**
 * When copies of a recycled post are due: each target at the wall-clock time that it had, in its own zone, so many days
 * after the post went out. Every copy is counted from the origin, so that no delay adds up.
 */

type Timed = Pick<PlannedTarget, 'accountId' | 'dueAt' | 'scheduledLocal' | 'timezone' | 'jitterSeconds'>;

/** The times of a recycled post. */
export interface RecyclePattern {
  readonly targets: readonly Timed[];
  /** Whole days from the due time of its first target to its publication: what was late by days counts from there. */
  readonly lateDays: number;
}

const dayMs = 86_400_000;

/** @param targets those that were not canceled, at least one */
export const patternOf = (targets: readonly Timed[], publishedAt: string): RecyclePattern => {
  const [first = publishedAt] = targets.map(({ dueAt }) => dueAt).sort();
  return { targets, lateDays: Math.max(0, Math.floor((Date.parse(publishedAt) - Date.parse(first)) / dayMs)) };
};

/** Without its jitter: a copy has its own. */
const wishedOn = ({ dueAt, scheduledLocal, timezone, jitterSeconds }: Timed, days: number): WishedTime => {
  if (scheduledLocal !== null) {
    const local = localDaysLater(scheduledLocal, days);
    return { at: instantOf(local, timezone), local, timezone };
  }
  const wished = new Date(Date.parse(dueAt) - jitterSeconds * 1000).toISOString();
  return { at: daysLater(wished, timezone, days), local: null, timezone };
};

const runOn = ({ targets, lateDays }: RecyclePattern, day: number): RecycleRun => {
  const [dueAt = ''] = targets.map((one) => wishedOn(one, lateDays + day).at).sort();
  return { day, dueAt };
};

/** By account: the time of each target of a copy. What has passed is due now. */
export const wishedTimes = (
  { targets, lateDays }: RecyclePattern,
  day: number,
  now: string,
): ReadonlyMap<string, WishedTime> =>
  new Map(
    targets.map((one) => {
      const wished = wishedOn(one, lateDays + day);
      return [one.accountId, wished.at < now ? { ...wished, at: now, local: null } : wished];
    }),
  );

/** The schedule that says the same as these times, as far as a schedule can. */
export const scheduleOfTimes = (times: Iterable<WishedTime>, spreadMinutes: number | null): Schedule => {
  const all = [...times].sort((a, b) => (a.at < b.at ? -1 : 1));
  const [first] = all;
  const last = all.at(-1);
  const none = { scheduledAt: null, scheduledLocal: null, from: null, to: null, spreadMinutes };
  if (first === undefined || last === undefined) return { ...none, type: 'now' };
  if (first.local !== null && all.every(({ local }) => local === first.local)) {
    return { ...none, type: 'at', scheduledLocal: first.local };
  }
  if (first.at === last.at) return { ...none, type: 'at', scheduledAt: first.at };
  return { ...none, type: 'range', from: first.at, to: last.at };
};

/** The next run after the day of the last one that is due after this instant. */
export const nextRun = (
  pattern: RecyclePattern,
  { lastDay, everyDays }: { readonly lastDay: number; readonly everyDays: number },
  after: string,
): RecycleRun => {
  const passed = (Date.parse(after) - Date.parse(runOn(pattern, lastDay).dueAt)) / (everyDays * dayMs);
  // A change of the clocks makes a day an hour shorter or longer.
  for (let count = Math.max(1, Math.floor(passed) - 1); ; count += 1) {
    const run = runOn(pattern, lastDay + count * everyDays);
    if (run.dueAt > after) return run;
  }
};

/** Missed runs collapse into the latest one: of those that are to be prepared now, the last. Null: none is. */
export const runToPrepare = (
  pattern: RecyclePattern,
  next: RecycleRun,
  { everyDays }: Pick<RecycleSettings, 'everyDays'>,
  now: string,
): RecycleRun | null => {
  const prepared = new Date(Date.parse(now) + recycleLeadMs).toISOString();
  if (next.dueAt > prepared) return null;
  const later = nextRun(pattern, { lastDay: next.day, everyDays }, prepared);
  return later.day === next.day + everyDays ? next : runOn(pattern, later.day - everyDays);
};

/** What follows after a copy: the next run, or the reason for which there is none. */
export const afterRun = (
  pattern: RecyclePattern,
  { everyDays, times, until }: RecycleSettings,
  { lastDay, posted, after }: { readonly lastDay: number; readonly posted: number; readonly after: string },
): RecycleThen => {
  if (times !== null && posted >= times) return { reason: 'times' };
  const next = nextRun(pattern, { lastDay, everyDays }, after);
  return until !== null && next.dueAt > until ? { reason: 'until' } : next;
};
