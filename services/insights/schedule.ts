import { hash } from 'node:crypto';
import { Temporal } from 'temporal-polyfill';
import { instantOf } from '#domain/zones.ts';
import type { MediaUse } from '#schemas/media.ts';

/**
 * Decides when to ask the networks. Pure: milliseconds since the epoch in and out. The worker observes posts right
 * after each midnight of their workspace, and accounts in the night of their own zone. Each account has its own minute,
 * so that a network does not get all calls at once.
 */

export interface Cadence {
  /** Ages at which a post is observed, milliseconds, rising; after the first one it is also observed every night. */
  readonly youngMs: readonly number[];
  /** Ages of each of which only the next midnight counts; null: every midnight. See `InsightsSource.nightAgesMs`. */
  readonly nightAgesMs: readonly number[] | null;
  /** How long after its publication a post is observed, milliseconds. */
  readonly lifeMs: number;
  /** Ages at which a story is observed, milliseconds, rising: networks report nothing about it after 24 h. */
  readonly storyMs: readonly number[];
  /** Waits before a failed job is tried again, milliseconds; after the last one it waits for its next regular time. */
  readonly retryMs: readonly number[];
  /** Shortest time between the two answers that prove a post removed, milliseconds by the network's clock. */
  readonly goneMs: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/**
 * A story expires a day after its publication; a network that counts from another moment may end it an hour earlier.
 */
export const storyEndsMs = dayMs - hourMs;

export const cadence: Cadence = {
  youngMs: [hourMs, 6 * hourMs, 24 * hourMs],
  nightAgesMs: null,
  lifeMs: 90 * dayMs,
  storyMs: [1, 3, 6, 12, 20, 23].map((hours) => hours * hourMs),
  retryMs: [60_000, 5 * 60_000, 30 * 60_000],
  goneMs: hourMs,
};

/** From 02:00 to 05:00. */
const nightBegins = 2 * 60;
const nightMinutes = 3 * 60;
/** Posts are observed from midnight to 02:00: a day's gain is the difference between the values at its midnights. */
const midnightMinutes = 2 * 60;

const spread = (accountId: string, minutes: number): number =>
  Number.parseInt(hash('sha256', accountId, 'hex').slice(0, 8), 16) % minutes;

/** The account's minute of the night, counted from midnight. */
export const minuteOf = (accountId: string): number => nightBegins + spread(accountId, nightMinutes);

const clock = (part: number): string => String(part).padStart(2, '0');

/**
 * The account's next nightly instant after the given one. A wall-clock time that DST skips comes an hour later; of one
 * that comes twice the first counts.
 */
export const nextNight = (after: number, timezone: string, accountId: string): number => {
  const minute = minuteOf(accountId);
  const time = `${clock(Math.floor(minute / 60))}:${clock(minute % 60)}`;
  let day = Temporal.Instant.fromEpochMilliseconds(after).toZonedDateTimeISO(timezone).toPlainDate();
  for (;;) {
    const at = Date.parse(instantOf(`${day.toString()}T${time}`, timezone));
    if (at > after) return at;
    day = day.add({ days: 1 });
  }
};

/**
 * The next instant after the given one at which the account's posts are observed for the day that ended. Where DST
 * skips a midnight the day begins at one o'clock.
 */
export const nextMidnight = (after: number, timezone: string, accountId: string): number => {
  const minutes = spread(accountId, midnightMinutes);
  let day = Temporal.Instant.fromEpochMilliseconds(after).toZonedDateTimeISO(timezone).toPlainDate();
  for (;;) {
    const at = day.toZonedDateTime(timezone).add({ minutes }).epochMilliseconds;
    if (at > after) return at;
    day = day.add({ days: 1 });
  }
};

export interface Observed {
  /** Milliseconds. */
  readonly publishedAt: number;
  /** Null: not known yet. */
  readonly use: MediaUse | null;
  readonly accountId: string;
  /** Of the workspace: its zone decides the days of the figures. */
  readonly timezone: string;
}

/** The next instant at which a post is observed; null: never again. */
export const nextObservation = (
  post: Observed,
  after: number,
  { youngMs, lifeMs, storyMs, nightAgesMs }: Cadence,
): number | null => {
  const { publishedAt, use, accountId, timezone } = post;
  const steps = (ages: readonly number[]) => ages.map((ms) => publishedAt + ms);
  const midnightAfter = (at: number): number => nextMidnight(at, timezone, accountId);
  const grown = publishedAt + (youngMs[0] ?? 0);
  const midnights =
    nightAgesMs === null ? [midnightAfter(Math.max(after, grown))] : steps(nightAgesMs).map(midnightAfter);
  const others = [...steps(youngMs), ...midnights.filter((at) => at <= publishedAt + lifeMs)];
  // A post whose use is not known yet may be a story, and networks report on a story for one day only.
  const planned = [...(use === 'story' || use === null ? steps(storyMs) : []), ...(use === 'story' ? [] : others)];
  const ahead = planned.filter((at) => at > after);
  return ahead.length === 0 ? null : Math.min(...ahead);
};

/** When a failed job is tried again. @param failures in a row, this one included */
export const nextTry = (failures: number, now: number, regular: number | null, { retryMs }: Cadence): number | null => {
  const wait = retryMs[failures - 1];
  if (wait === undefined) return regular;
  return regular === null ? now + wait : Math.min(now + wait, Math.max(regular, now + 1));
};

/** The day of an instant in a zone, `YYYY-MM-DD`. @param instant ISO 8601 */
export const dayOf = (instant: string, timezone: string): string =>
  Temporal.Instant.from(instant).toZonedDateTimeISO(timezone).toPlainDate().toString();
