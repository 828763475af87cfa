import { Temporal } from 'temporal-polyfill';
import { isTimezone } from '#domain/zones.ts';

/**
 * Computes when the days of a workspace begin. A workspace may change its zone, and past days stay as they were
 * counted, so a day is one of the zone that was in force: it begins at the first instant at which the workspace's clock
 * shows it or a later one. So days never overlap and leave nothing out, whatever a clock does: a clock set back lives
 * in the same day again, a clock that leaps over a day leaves that day without an instant.
 */

export interface ZoneChange {
  /** Milliseconds since the epoch. */
  readonly since: number;
  readonly timezone: string;
}

/** Rising by `since`; the first zone is also in force at every instant before the second. */
export type Zones = readonly [ZoneChange, ...ZoneChange[]];

export const utcZones: Zones = [{ since: Number.NEGATIVE_INFINITY, timezone: 'UTC' }];

/** A day of the calendar and its instants, milliseconds; `end` is exclusive. */
export interface DaySpan {
  readonly day: string;
  readonly start: number;
  readonly end: number;
}

/** Longest time between two observations of a post over which its counters are interpolated. */
export const longestGapMs = 36 * 3_600_000;

const dayMs = 24 * 3_600_000;
/** No zone is further from UTC. */
const maxOffsetMs = 15 * 3_600_000;
/** A worker that has not read a zone change yet writes days of the former zone for at most this long. */
const lateMs = 3 * dayMs;

const maxKnown = 20_000;
const known = new Map<string, number>();

const midnightOf = (timezone: string, day: string): number => {
  const key = `${day} ${timezone}`;
  const before = known.get(key);
  if (before !== undefined) return before;
  const zone = isTimezone(timezone) ? timezone : 'UTC';
  const at = Temporal.PlainDate.from(day).toZonedDateTime(zone).epochMilliseconds;
  if (known.size >= maxKnown) known.clear();
  known.set(key, at);
  return at;
};

const nextDay = (day: string): string => dateOf(Date.parse(day) + dayMs);
const dateOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** The first instant of a day, milliseconds. */
export const startOf = (zones: Zones, day: string): number => {
  for (const [at, { since, timezone }] of zones.entries()) {
    const start = Math.max(since, midnightOf(timezone, day));
    if (start < (zones[at + 1]?.since ?? Number.POSITIVE_INFINITY)) return start;
  }
  return Number.POSITIVE_INFINITY;
};

export const spanOf = (zones: Zones, day: string): DaySpan => ({
  day,
  start: startOf(zones, day),
  end: startOf(zones, nextDay(day)),
});

/** Instants, milliseconds, that an observation whose event names this day may have. */
export const lookTimesOf = (zones: Zones, day: string): { readonly first: number; readonly last: number } => {
  const about = Date.parse(day);
  const near = zones.filter(
    ({ since }, at) =>
      since < about + dayMs + maxOffsetMs && (zones[at + 1]?.since ?? Number.POSITIVE_INFINITY) > about - lateMs,
  );
  const times = near.map(({ timezone }) => [midnightOf(timezone, day), midnightOf(timezone, nextDay(day))] as const);
  return { first: Math.min(...times.map(([first]) => first)), last: Math.max(...times.map(([, last]) => last)) };
};

/**
 * Days whose gains an observation of this day may change: the day itself, and those back to the previous observation.
 */
export const changedBy = (zones: Zones, day: string): readonly DaySpan[] => {
  const { first, last } = lookTimesOf(zones, day);
  const from = first - longestGapMs;
  const days: DaySpan[] = [];
  for (let one = dateOf(from - maxOffsetMs - dayMs); Date.parse(one) < last + maxOffsetMs; one = nextDay(one)) {
    const span = spanOf(zones, one);
    if (span.start < last && span.end > from) days.push(span);
  }
  return days;
};
