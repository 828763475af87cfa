import { Temporal } from 'temporal-polyfill';

/** What a network allows an operator's whole app, and when it begins to count anew: in the calendar of its own zone. */

/** A day or a month of a zone: `America/Los_Angeles`. */
export interface CalendarWindow {
  readonly zone: string;
  readonly every: 'day' | 'month';
}

export interface AppBudgetRule extends CalendarWindow {
  /** In the network's words: `videos.insert`. */
  readonly name: string;
  /** What an app has that asked for no more. */
  readonly limit: number;
  /** Whether calls are counted, or the accounts for which one was made. */
  readonly counts: 'calls' | 'accounts';
}

/**
 * The day or month that an instant is in. A day on which the clocks change has 23 or 25 hours, and begins at its first
 * instant, also where the clocks skip midnight. Milliseconds since the epoch; it ends where the next begins.
 */
export const windowAt = (
  { zone, every }: CalendarWindow,
  now: number,
): { readonly begins: number; readonly ends: number } => {
  const day = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(zone).toPlainDate();
  const first = every === 'day' ? day : day.with({ day: 1 });
  const next = first.add(every === 'day' ? { days: 1 } : { months: 1 });
  const [begins, ends] = [first, next].map((date) => date.toZonedDateTime(zone).epochMilliseconds);
  return { begins: begins ?? now, ends: ends ?? now };
};

/** When the next day begins in a zone, milliseconds since the epoch. @param zone `America/Los_Angeles` */
export const nextDayIn = (zone: string, now: number): number => windowAt({ zone, every: 'day' }, now).ends;
