import { hash } from 'node:crypto';
import { Temporal } from 'temporal-polyfill';
import { instantOf } from '#domain/zones.ts';
import type { MediaUse } from '#schemas/media.ts';

/**
 * When networks are asked. Pure: milliseconds since the epoch in and out. Nights are those of the account's own zone,
 * each account at its own minute of them, so that a network is not asked by everybody at once.
 */

export interface Cadence {
  /** After its publication a post is looked at after each of these, milliseconds, rising; then nightly. */
  readonly youngMs: readonly number[];
  /** How long after its publication a post is looked at, milliseconds. */
  readonly lifeMs: number;
  /** When a story is looked at for the last time: its figures stand still 24 h after it has expired, which it does after 24 h. */
  readonly storyMs: number;
  /** Waits before what did not answer is asked again; after them it waits for its next regular time. Milliseconds. */
  readonly retryMs: readonly number[];
  /** Least time by the network's clock between the two looks that tell that a post is gone, milliseconds. */
  readonly goneMs: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** A story expires a day after it went out; a network that counts from another moment may end it this much earlier. */
export const storyEndsMs = dayMs - hourMs;

export const cadence: Cadence = {
  youngMs: [hourMs, 6 * hourMs, 24 * hourMs],
  lifeMs: 90 * dayMs,
  storyMs: 48 * hourMs,
  retryMs: [60_000, 5 * 60_000, 30 * 60_000],
  goneMs: hourMs,
};

/** From 02:00 to 05:00. */
const nightBegins = 2 * 60;
const nightMinutes = 3 * 60;

/** The account's minute of the night, counted from midnight. */
export const minuteOf = (accountId: string): number =>
  nightBegins + (Number.parseInt(hash('sha256', accountId, 'hex').slice(0, 8), 16) % nightMinutes);

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

export interface Observed {
  /** Milliseconds. */
  readonly publishedAt: number;
  /** Null: not known yet. */
  readonly use: MediaUse | null;
  readonly accountId: string;
  readonly timezone: string;
}

/** When a post is looked at next after this instant; null: never again. */
export const nextLook = (post: Observed, after: number, { youngMs, lifeMs, storyMs }: Cadence): number | null => {
  const { publishedAt, use, accountId, timezone } = post;
  const story = use === 'story';
  const steps = story ? [...youngMs, storyMs] : youngMs;
  const young = steps.map((ms) => publishedAt + ms).find((at) => at > after);
  if (young !== undefined) return young;
  if (story) return null;
  const night = nextNight(after, timezone, accountId);
  return night <= publishedAt + lifeMs ? night : null;
};

/** When something that did not answer is asked again. @param failures in a row, this one included. */
export const nextTry = (failures: number, now: number, regular: number | null, { retryMs }: Cadence): number | null => {
  const wait = retryMs[failures - 1];
  if (wait === undefined) return regular;
  return regular === null ? now + wait : Math.min(now + wait, Math.max(regular, now + 1));
};

/** The day of an instant in a zone, `YYYY-MM-DD`. @param instant ISO 8601 */
export const dayOf = (instant: string, timezone: string): string =>
  Temporal.Instant.from(instant).toZonedDateTimeISO(timezone).toPlainDate().toString();
