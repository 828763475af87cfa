import type { Schedule } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { isBeingCanceled, isCancelable, type TargetState } from '../post-target/target.ts';
import { daysLater, instantOf, localDaysLater } from '../zones.ts';
import type { RecycleRun, RecycleSettings, RecycleThen } from './post-recycle.ts';
import { recycleLeadMs } from './post-recycle.ts';
import type { RequestedTime } from './scheduling.ts';

/**
 * When copies of a recycled post are due: each target at the wall-clock time that it had, in its own zone, so many days
 * after the post went out. Every copy is counted from the origin, so that no delay adds up. On each account it keeps its
 * distance from the publication before it, also where that was late: `everyDays` days less half a day, within which the
 * wall-clock time is found again.
 */

type Timed = Pick<PlannedTarget, 'accountId' | 'dueAt' | 'scheduledLocal' | 'timezone' | 'jitterSeconds'>;

/** The times of a recycled post. */
export interface RecyclePattern {
  readonly targets: readonly Timed[];
  /** Days from the due time of its first target to its publication, the nearest whole number: they count from there. */
  readonly lateDays: number;
  /** By account: when the post, or its last copy, went out there. */
  readonly last: ReadonlyMap<string, string>;
}

const dayMs = 86_400_000;

/** @param targets those that were not canceled, at least one, at the times that were asked for */
export const patternOf = (
  targets: readonly Timed[],
  publishedAt: string,
  last: RecyclePattern['last'] = new Map(),
): RecyclePattern => {
  const [first = publishedAt] = targets.map(({ dueAt }) => dueAt).sort();
  const lateDays = Math.max(0, Math.round((Date.parse(publishedAt) - Date.parse(first)) / dayMs));
  return { targets, lateDays, last };
};

/** Without its jitter: a copy has its own. */
const requestedTimeOn = ({ dueAt, scheduledLocal, timezone, jitterSeconds }: Timed, days: number): RequestedTime => {
  if (scheduledLocal !== null) {
    const local = localDaysLater(scheduledLocal, days);
    return { at: instantOf(local, timezone), local, timezone };
  }
  const requested = new Date(Date.parse(dueAt) - jitterSeconds * 1000).toISOString();
  return { at: daysLater(requested, timezone, days), local: null, timezone };
};

const runOn = ({ targets, lateDays }: RecyclePattern, day: number): RecycleRun => {
  const [dueAt = ''] = targets.map((one) => requestedTimeOn(one, lateDays + day).at).sort();
  return { day, dueAt };
};

/** What of a post or of its copy went out on an account, or still may. */
export type Before =
  /** When it went out; of a publication that has begun and has no outcome, now. */
  | { readonly kind: 'out'; readonly at: string }
  /** Nothing of it is out: a cancel keeps it from going out. `asked`: its network is asked already whether it does. */
  | { readonly kind: 'waits'; readonly asked: boolean }
  | { readonly kind: 'nothing' };

export const beforeOf = (state: TargetState, now: string): Before => {
  if (state.status === 'none' || isCancelable(state, now)) return { kind: 'waits', asked: isBeingCanceled(state) };
  if (state.status === 'published') return { kind: 'out', at: state.publishedAt };
  if (state.status !== 'failed' && state.status !== 'canceled') return { kind: 'out', at: now };
  const segment = state.common.publishedSegments.at(-1);
  return segment === undefined ? { kind: 'nothing' } : { kind: 'out', at: segment.publishedAt };
};

/** How much too early the run of that day would be, milliseconds; 0 or less: it keeps its distance on every account. */
const tooEarlyBy = ({ targets, lateDays, last }: RecyclePattern, day: number, everyDays: number): number =>
  Math.max(
    ...targets.map((one) => {
      const before = last.get(one.accountId);
      if (before === undefined) return Number.NEGATIVE_INFINITY;
      return Date.parse(before) + (everyDays - 0.5) * dayMs - Date.parse(requestedTimeOn(one, lateDays + day).at);
    }),
  );

/** The run of that day, or of the next one that keeps its distance from the publication before it. */
const distantRun = (pattern: RecyclePattern, from: number, everyDays: number): RecycleRun => {
  // A change of the clocks makes a day an hour shorter or longer.
  let day = from + Math.max(0, Math.floor(tooEarlyBy(pattern, from, everyDays) / dayMs) - 1);
  while (tooEarlyBy(pattern, day, everyDays) > 0) day += 1;
  return runOn(pattern, day);
};

/** By account: the time of each target of a copy. What has passed is due now. */
export const requestedTimes = (
  { targets, lateDays }: Pick<RecyclePattern, 'targets' | 'lateDays'>,
  day: number,
  now: string,
): ReadonlyMap<string, RequestedTime> =>
  new Map(
    targets.map((one) => {
      const requested = requestedTimeOn(one, lateDays + day);
      return [one.accountId, requested.at < now ? { ...requested, at: now, local: null } : requested];
    }),
  );

/** The schedule that says the same as these times, as far as a schedule can. */
export const scheduleOfTimes = (times: Iterable<RequestedTime>, spreadMinutes: number | null): Schedule => {
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

/** The next run on the days that follow from the day of the last one, whatever went out before it. */
const nextOnDays = (
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

/** The next run after the day of the last one that is due after this instant and keeps its distance. */
export const nextRun = (pattern: RecyclePattern, days: Parameters<typeof nextOnDays>[1], after: string): RecycleRun =>
  distantRun(pattern, nextOnDays(pattern, days, after).day, days.everyDays);

/** Missed runs collapse into the latest one: of those that are to be prepared now, the last. Null: none is. */
export const runToPrepare = (
  pattern: RecyclePattern,
  next: RecycleRun,
  { everyDays }: Pick<RecycleSettings, 'everyDays'>,
  now: string,
): RecycleRun | null => {
  const prepared = new Date(Date.parse(now) + recycleLeadMs).toISOString();
  if (next.dueAt > prepared) return null;
  const later = nextOnDays(pattern, { lastDay: next.day, everyDays }, prepared);
  return later.day === next.day + everyDays ? next : runOn(pattern, later.day - everyDays);
};

/** What follows where a run would come too soon after the publication before it; null: it keeps its distance. */
export const afterTooEarly = (
  pattern: RecyclePattern,
  { day }: RecycleRun,
  { everyDays, until }: RecycleSettings,
): RecycleThen | null => {
  const run = distantRun(pattern, day, everyDays);
  if (run.day === day) return null;
  return until !== null && run.dueAt > until ? { reason: 'until' } : run;
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
