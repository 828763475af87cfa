import { hash } from 'node:crypto';
import { Temporal } from 'temporal-polyfill';
import { instantOf } from '#domain/zones.ts';
import type { MediaUse } from '#schemas/media.ts';

/**
 * When networks are asked. Pure: milliseconds since the epoch in and out. Posts are looked at right after each midnight of
 * their workspace, accounts in the night of their own zone. Each account has its own minute, so that a network does not get
 * all calls at once.
 */

export interface Cadence {
  /** After its publication a post is looked at after each of these, milliseconds, rising; after the first nightly too. */
  readonly youngMs: readonly number[];
  /** How long after its publication a post is looked at, milliseconds. */
  readonly lifeMs: number;
  /** When a story is looked at, milliseconds after its publication, rising: networks report nothing on it after 24 h. */
  readonly storyMs: readonly number[];
  /** Waits, milliseconds, before a failed job is tried again; after them it waits for its next regular time. */
  readonly retryMs: readonly number[];
  /** Least time by the network's clock between the two looks that prove a post gone, milliseconds. */
  readonly goneMs: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** A story expires a day after it went out; a network that counts from another moment may end it this much earlier. */
export const storyEndsMs = dayMs - hourMs;

export const cadence: Cadence = {
  youngMs: [hourMs, 6 * hourMs, 24 * hourMs],
  lifeMs: 90 * dayMs,
  storyMs: [1, 3, 6, 12, 20, 23].map((hours) => hours * hourMs),
  retryMs: [60_000, 5 * 60_000, 30 * 60_000],
  goneMs: hourMs,
};

/** From 02:00 to 05:00. */
const nightBegins = 2 * 60;
const nightMinutes = 3 * 60;
/** Posts are looked at from midnight to 02:00: a day's gain is the difference between the values at its midnights. */
const midnightMinutes = 2 * 60;

const spread = (accountId: string, minutes: number): number =>
  Number.parseInt(hash('sha256', accountId, 'hex').slice(0, 8), 16) % minutes;

/** The account's minute of the night, counted from midnight. */
export const minuteOf = (accountId: string): number => nightBegins + spread(accountId, nightMinutes);

const clock = (part: number): string => String(part).padStart(2, '0');

/** The account's first instant of a night after this one. A wall-clock time that DST skips comes an hour later, one that comes twice is its first. */
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

/** The first instant after this one at which the account's posts are looked at for the day that ended. Where DST skips a midnight the day begins at one o'clock. */
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
  /** Of the workspace, whose days its figures are of. */
  readonly timezone: string;
}

/** When a post is looked at next after this instant; null: never again. */
export const nextLook = (post: Observed, after: number, { youngMs, lifeMs, storyMs }: Cadence): number | null => {
  const { publishedAt, use, accountId, timezone } = post;
  const steps = (ages: readonly number[]) => ages.map((ms) => publishedAt + ms);
  const midnight = nextMidnight(Math.max(after, publishedAt + (youngMs[0] ?? 0)), timezone, accountId);
  const others = [...steps(youngMs), ...(midnight <= publishedAt + lifeMs ? [midnight] : [])];
  // A post whose use is unknown yet may be a story, on which networks report for a day only.
  const looks = [...(use === 'story' || use === null ? steps(storyMs) : []), ...(use === 'story' ? [] : others)];
  const ahead = looks.filter((at) => at > after);
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
