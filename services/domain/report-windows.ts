import { Temporal } from 'temporal-polyfill';
import type { ReportDefinition } from '#schemas/report.ts';

/** Which days a report is about, and when one runs by itself. */

export interface ReportWindow {
  /** `YYYY-MM-DD`, both inclusive. */
  readonly from: string;
  readonly to: string;
}

type Schedule = NonNullable<ReportDefinition['schedule']>;

/** The calendar day of an instant in a zone, `YYYY-MM-DD`. */
export const dayOf = (instant: string, timezone: string): string =>
  Temporal.Instant.from(instant).toZonedDateTimeISO(timezone).toPlainDate().toString();

/** The window ends before the day of the run, because that day is not over. Weeks begin on Monday. */
export const windowOf = (window: ReportDefinition['window'], runDay: string): ReportWindow => {
  const day = Temporal.PlainDate.from(runDay);
  const between = (from: Temporal.PlainDate, after: Temporal.PlainDate): ReportWindow => ({
    from: from.toString(),
    to: after.subtract({ days: 1 }).toString(),
  });
  switch (window) {
    case 'last_7_days':
      return between(day.subtract({ days: 7 }), day);
    case 'last_30_days':
      return between(day.subtract({ days: 30 }), day);
    case 'last_90_days':
      return between(day.subtract({ days: 90 }), day);
    case 'last_week': {
      const monday = day.subtract({ days: day.dayOfWeek - 1 });
      return between(monday.subtract({ weeks: 1 }), monday);
    }
    case 'last_month': {
      const first = day.with({ day: 1 });
      return between(first.subtract({ months: 1 }), first);
    }
  }
};

/** The first day from `day` on, on which the report runs. */
const dayFrom = (schedule: Schedule, day: Temporal.PlainDate): Temporal.PlainDate => {
  switch (schedule.every) {
    case 'day':
      return day;
    case 'week':
      return day.add({ days: ((schedule.weekday ?? 1) - day.dayOfWeek + 7) % 7 });
    case 'month': {
      // In a shorter month the report runs on the last day.
      const inMonth = (month: Temporal.PlainDate): Temporal.PlainDate =>
        month.with({ day: schedule.dayOfMonth ?? 1 }, { overflow: 'constrain' });
      const here = inMonth(day);
      return Temporal.PlainDate.compare(here, day) < 0 ? inMonth(day.with({ day: 1 }).add({ months: 1 })) : here;
    }
  }
};

/**
 * The first instant after `after` at which the report runs, ISO 8601. Where a DST change skips the hour, the report
 * runs later by the skipped time; where the change repeats the hour, the report runs the first time. So it runs once on
 * each such day.
 */
export const nextInstant = (schedule: Schedule, timezone: string, after: string): string => {
  let day = Temporal.Instant.from(after).toZonedDateTimeISO(timezone).toPlainDate();
  for (;;) {
    day = dayFrom(schedule, day);
    const instant = day
      .toPlainDateTime({ hour: schedule.hour })
      .toZonedDateTime(timezone, { disambiguation: 'compatible' })
      .toInstant();
    if (Temporal.Instant.compare(instant, Temporal.Instant.from(after)) > 0)
      return new Date(instant.epochMilliseconds).toISOString();
    day = day.add({ days: 1 });
  }
};

/** Longer than the time between two instants of any schedule, milliseconds. */
const longestGapMs = 62 * 86_400_000;

/** The last instant after `after`, and not after `until`, at which the report runs. Null: no such instant. */
export const lastInstant = (schedule: Schedule, timezone: string, after: string, until: string): string | null => {
  const end = Date.parse(until);
  let last: string | null = null;
  let next = new Date(Math.max(Date.parse(after), end - longestGapMs)).toISOString();
  for (;;) {
    next = nextInstant(schedule, timezone, next);
    if (Date.parse(next) > end) return last;
    last = next;
  }
};
