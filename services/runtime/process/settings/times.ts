import type { SettingReader } from '../config-values.ts';

/**
 * Times and counts that promises of the contract stand on, such as the retries of webhooks and the wait behind “at most
 * once”. No operator sets them: tests shorten them by POSTLINE_TIMES, one JSON object for all.
 */

interface Time<T> {
  readonly fallback: T;
  /** @throws Error that says what it must be, to be read after “must have” and the member's name */
  readonly read: (value: unknown) => T;
}

const dayMs = 86_400_000;

const isWhole = (value: unknown, min: number, max: number): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max;

const whole = <T extends number | null>(fallback: T, min: number, max: number): Time<T | number> => ({
  fallback,
  read: (value) => {
    if (!isWhole(value, min, max)) throw new Error(`a whole number from ${min} to ${max}`);
    return value;
  },
});

const waits = (fallback: readonly number[]): Time<readonly number[]> => ({
  fallback,
  read: (value) => {
    const max = 7 * dayMs;
    if (!Array.isArray(value) || !value.every((one) => isWhole(one, 0, max)))
      throw new Error(`a list of whole numbers from 0 to ${max}`);
    return value;
  },
});

const times = {
  /** Time the boundary call may take; null = the adapter's own: 30 s, sandbox 3 s. */
  boundaryDeadlineMs: whole(null as number | null, 100, 600_000),
  /** How long after the deadline “absent” stays unknown; null = the adapter's own: 10 min or more, sandbox 10 s. */
  settleWindowMs: whole(null as number | null, 0, 7 * dayMs),
  /** Waits between reconciles of an unknown outcome; then hourly for 72 h. */
  reconcileDelaysMs: waits([0, 5_000, 30_000, 120_000, 600_000]),
  /** Waits after transient failures before the call; then the target fails. */
  deferDelaysMs: waits([30_000, 120_000, 600_000]),
  /** Automatic retries after a rate limit. */
  maxRateLimits: whole(10, 0, 1_000),
  /** How often the sweeper looks for plans that were not carried out. */
  sweepIntervalMs: whole(30_000, 100, 3_600_000),
  /**
   * When the figures of a post are fetched after its publication, rising; after the first also after each midnight of
   * its workspace for 90 days. A story has times of its own.
   */
  insightsYoungDelaysMs: waits([3_600_000, 21_600_000, dayMs]),
  /** Waits before each attempt of a delivery, counted from the attempt before; then the delivery has failed. */
  webhookRetryDelaysMs: waits([
    0,
    5_000,
    60_000,
    300_000,
    1_800_000,
    7_200_000,
    18_000_000,
    36_000_000,
    50_400_000,
    72_000_000,
    dayMs,
  ]),
  /** Time a webhook request may take, from the lookup of the name to the end of the answer. */
  webhookExchangeMs: whole(15_000, 50, 60_000),
  /** After this another sender may send a delivery that a sender has begun; more than twice `webhookExchangeMs`. */
  webhookLeaseMs: whole(32_000, 100, 600_000),
  /** Failures in a row after which nothing is sent to an endpoint for a while. */
  webhookBreakerFailures: whole(10, 1, 10_000),
  /** How long that while is at first; it doubles up to twenty times this. */
  webhookBreakerMs: whole(30_000, 10, 3_600_000),
  /** An endpoint without a success for so long is turned off. */
  webhookDisableAfterMs: whole(5 * dayMs, 100, 31 * dayMs),
} as const;

type Table = typeof times;
export type Times = { readonly [K in keyof Table]: Table[K] extends Time<infer T> ? T : never };

const entries = Object.entries<Time<unknown>>(times);

export const usualTimes = Object.fromEntries(entries.map(([name, { fallback }]) => [name, fallback])) as Times;

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

/** A member that is left out keeps its usual time. */
export const readTimes: SettingReader<Times> = (text) => {
  const given = parsed(text);
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw new Error('must be a JSON object');
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(times, name));
  if (unknown !== undefined)
    throw new Error(`must not have the member ${unknown}: its members are ${Object.keys(times).join(', ')}`);
  const read = Object.entries<unknown>({ ...given }).map(([name, value]): [string, unknown] => {
    try {
      return [name, times[name as keyof Times].read(value)];
    } catch (error) {
      throw new Error(`must have at ${name} ${error instanceof Error ? error.message : 'another value'}`);
    }
  });
  return { ...usualTimes, ...Object.fromEntries(read) };
};
