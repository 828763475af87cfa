import { Temporal } from 'temporal-polyfill';

/** Wall-clock times and the zones that give them an instant. */

const known = new Map<string, boolean>();

/** A zone of the IANA database; an offset such as `+02:00` is none. */
export const isTimezone = (name: string): boolean => {
  if (!/^[A-Za-z]/.test(name) || name.length > 100) return false;
  const answer = known.get(name);
  if (answer !== undefined) return answer;
  let valid = true;
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name);
  } catch {
    valid = false;
  }
  if (known.size < 2_000) known.set(name, valid);
  return valid;
};

/** The instant of a wall-clock time; a time that a DST change skips or repeats resolves as `compatible`. ISO 8601. */
export const instantOf = (local: string, timezone: string): string =>
  new Date(
    Temporal.PlainDateTime.from(local).toZonedDateTime(timezone, { disambiguation: 'compatible' }).epochMilliseconds,
  ).toISOString();

/** A wall-clock time that a change of the clocks leaves without an instant, or with two. */
export interface ClockChange {
  readonly code: 'local_time_skipped' | 'local_time_repeated';
  /** What it means, in words for the author: the instant that counts, and the other one. */
  readonly message: string;
}

/** Null: the clocks of the zone show the time exactly once. */
export const clockChangeAt = (local: string, timezone: string): ClockChange | null => {
  const time = Temporal.PlainDateTime.from(local);
  const first = time.toZonedDateTime(timezone, { disambiguation: 'earlier' });
  const second = time.toZonedDateTime(timezone, { disambiguation: 'later' });
  if (first.epochMilliseconds === second.epochMilliseconds) return null;
  const [at, again] = [instantOf(local, timezone), new Date(second.epochMilliseconds).toISOString()];
  if (first.toPlainDateTime().equals(time)) {
    const message = `The clocks in ${timezone} show ${local} twice, at ${at} and at ${again}: the first counts. If the second is meant, send it as scheduledAt.`;
    return { code: 'local_time_repeated', message };
  }
  const shown = second.toPlainDateTime().toString({ smallestUnit: 'minute' });
  const message = `The clocks in ${timezone} skip ${local}: it counts as ${at}, when they show ${shown}.`;
  return { code: 'local_time_skipped', message };
};

/** The same wall-clock time so many days later, as `instantOf` resolves it. ISO 8601. */
export const daysLater = (instant: string, timezone: string, days: number): string =>
  new Date(Temporal.Instant.from(instant).toZonedDateTimeISO(timezone).add({ days }).epochMilliseconds).toISOString();

/** The same wall-clock time so many days later, to the minute. */
export const localDaysLater = (local: string, days: number): string =>
  Temporal.PlainDateTime.from(local).add({ days }).toString({ smallestUnit: 'minute' });

/** The same calendar day so many months later, UTC. */
export const monthsAfter = (instant: string, months: number): string => {
  const at = new Date(instant);
  const day = at.getUTCDate();
  // The last day of the month where it has fewer: day 0 of the month after it.
  at.setUTCMonth(at.getUTCMonth() + months + 1, 0);
  at.setUTCDate(Math.min(day, at.getUTCDate()));
  return at.toISOString();
};

/** First and last days of the years that the stores hold: some zone moves an instant of theirs out of these years. */
const edges = /^(0000|0001-01-01|9999-12-31)/;

/** False for a text that fits the pattern and is no date: 31 February, 25 o'clock, a time beyond the years 1 to 9999. */
export const isLocalDateTime = (local: string): boolean => {
  if (edges.test(local)) return false;
  try {
    Temporal.PlainDateTime.from(local);
    return true;
  } catch {
    return false;
  }
};

/** The month of an instant in a zone: `2026-11`. */
export const monthOf = (instant: string, timezone: string): string =>
  Temporal.Instant.from(instant).toZonedDateTimeISO(timezone).toPlainDate().toPlainYearMonth().toString();

/** So many months after a month: `2026-11` and 2 give `2027-01`. */
export const monthAfter = (month: string, months: number): string =>
  Temporal.PlainYearMonth.from(month).add({ months }).toString();

/** The instant at which a month begins in a zone. ISO 8601. */
export const monthBegin = (month: string, timezone: string): string => instantOf(`${month}-01T00:00`, timezone);
