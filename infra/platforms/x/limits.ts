import type { ObservedWindow } from '#schemas/cadence.ts';

/** The headers in which X says what is left: of 15 minutes by the account, of 24 hours by the account and by the app. */

type Headers = Readonly<Record<string, string>>;

interface Bucket {
  readonly prefix: string;
  readonly name: string;
  readonly seconds: number;
  readonly isOfApp: boolean;
}

const buckets: readonly Bucket[] = [
  { prefix: 'x-rate-limit', name: 'posts in 15 minutes', seconds: 900, isOfApp: false },
  { prefix: 'x-user-limit-24hour', name: 'posts in 24 hours', seconds: 86_400, isOfApp: false },
  { prefix: 'x-app-limit-24hour', name: 'posts of the app in 24 hours', seconds: 86_400, isOfApp: true },
];

/** No bucket is longer. A wrong header would rest the whole app, which nobody could wake. */
const maxRestMs = 86_400_000;

const wholeOf = (headers: Headers, name: string): number | null => {
  const text = headers[name] ?? '';
  return /^\d{1,12}$/.test(text) ? Number(text) : null;
};

interface Seen extends Bucket {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds since the epoch. */
  readonly reset: number;
}

const seenIn = (headers: Headers): readonly Seen[] =>
  buckets.flatMap((bucket) => {
    const limit = wholeOf(headers, `${bucket.prefix}-limit`);
    const remaining = wholeOf(headers, `${bucket.prefix}-remaining`);
    const reset = wholeOf(headers, `${bucket.prefix}-reset`);
    return limit === null || remaining === null || reset === null
      ? []
      : [{ ...bucket, limit, remaining, reset: reset * 1_000 }];
  });

/** What an answer to a create says about the account. */
export const windowsOf = (headers: Headers): readonly ObservedWindow[] =>
  seenIn(headers)
    .filter(({ isOfApp }) => !isOfApp)
    .map(({ name, seconds, limit, remaining, reset }) => ({
      ...{ name, seconds, limit, used: Math.max(limit - remaining, 0) },
      resetsAt: new Date(Math.min(reset, 8e15)).toISOString(),
    }));

export interface Exhausted {
  /** Milliseconds since the epoch, now or later and within a day. */
  readonly until: number;
  /** The same as X names it. */
  readonly named: number;
  readonly isOfApp: boolean;
}

/** The exhausted bucket that is refilled last; without one, the end of 15 minutes where X names it, else `orElse`. */
export const exhausted = (headers: Headers, now: number, orElse: number): Exhausted => {
  const seen = seenIn(headers)
    .filter(({ reset }) => reset > now - 1_000)
    // Within a bucket's own length X refills it, whatever the header says.
    .map((one) => ({ ...one, reset: Math.min(one.reset, now + one.seconds * 1_000) }));
  const empty = seen.filter(({ remaining }) => remaining === 0).sort((a, b) => b.reset - a.reset);
  const last = empty[0] ?? seen.find(({ prefix }) => prefix === 'x-rate-limit');
  const after = wholeOf(headers, 'retry-after');
  // A wait of no seconds names none.
  const named = last?.reset ?? (after === null || after === 0 ? orElse : now + after * 1_000);
  const until = Math.min(Math.max(named, now), now + maxRestMs);
  return { until, named, isOfApp: empty[0]?.isOfApp === true };
};
