import { dayOf } from '#domain/report-windows.ts';
import type { OfDay } from '#projections/analytics/rollup.ts';
import type { Completeness } from '#schemas/report.ts';

/**
 * Decides whether the figures of a run's days are final, and how long the run waits for final ones. Both follow from
 * the stream and the clock, so a restart does not begin the wait again.
 */

/** Longest rest between two tries of a waiting run, milliseconds. */
const maxRestMs = 600_000;

export interface Waiting {
  /** ISO 8601. */
  readonly requestedAt: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Longest wait after the request, milliseconds. */
  readonly maxMs: number;
  readonly minRestMs: number;
}

/** Milliseconds until the next try of a run whose days are not final; 0: its longest wait is over. */
export const restOf = ({ requestedAt, now, maxMs, minRestMs }: Waiting): number => {
  // The clock of the process that wrote the request may be ahead of ours.
  const age = Math.max(0, now - Date.parse(requestedAt));
  return Math.max(0, Math.min(maxMs - age, maxRestMs, Math.max(minRestMs, age / 2)));
};

export interface Unsettled {
  /** The first day that is not counted yet; null: all are. */
  readonly uncounted: string | null;
  /** Milliseconds since the epoch, by the database's clock. */
  readonly now: number;
  readonly timezone: string;
}

/**
 * Marks days that are not counted yet or not over as provisional. A window ends with the day before its run, but a
 * workspace whose zone moved west may live in that day again.
 */
export const settledSeries = <D extends OfDay>(
  series: readonly D[],
  { uncounted, now, timezone }: Unsettled,
): { readonly series: readonly D[]; readonly completeness: Completeness } => {
  const today = dayOf(new Date(now).toISOString(), timezone);
  const isOpen = (day: string): boolean => day >= today || (uncounted !== null && day >= uncounted);
  const days = series.map((one) => (isOpen(one.day) ? { ...one, provisional: true } : one));
  const provisionalDays = days.filter(({ provisional }) => provisional).map(({ day }) => day);
  return { series: days, completeness: { complete: provisionalDays.length === 0, provisionalDays } };
};
