import type { Json } from '#contracts/ports/platform.ts';
import type { ObservedWindow } from '#schemas/cadence.ts';
import { type Members, membersOf, numberIn, parsed } from '../shared/members.ts';
import { namedInstant } from '../shared/outcomes.ts';

/** What the headers of an answer say of limits: buckets with their rest, or shares in percent as Meta names them. */

export type Headers = Readonly<Record<string, string>>;

interface BucketHeaders {
  readonly remaining: string;
  readonly reset: string;
  /** Seconds since the epoch, or from now. A network that says the one is read as the other where only that can be. */
  readonly resetIs: 'epoch' | 'seconds';
}

/** Three headers that speak of one limit alone. */
export interface NamedBucket extends BucketHeaders {
  /** `posts in 24 hours`. */
  readonly name: string;
  readonly seconds: number;
  /** The limit is of the operator's whole app. */
  readonly ofApp: boolean;
  readonly limit: string;
}

/**
 * Headers of the IETF draft "RateLimit header fields": one header lists limits as `100;w=60`, where several are listed
 * after the number of the one that the other two headers speak of. `120, 10;w=1, 120;w=60;name="of the user"`.
 */
export interface PolicyBucket extends BucketHeaders {
  readonly policy: string;
  /** Name of a limit by its seconds. A limit with another length is none of the account's. */
  readonly names: Readonly<Record<number, string>>;
  /** Seconds of those that are of the operator's whole app. */
  readonly ofApp?: readonly number[];
  /** Points that a post costs, where the network counts points. Default 1. */
  readonly perPost?: number;
}

/** The first is the one whose end counts where none is empty. */
export type Bucket = NamedBucket | PolicyBucket;

/** Headers of JSON in which Meta says how much of a limit is used, in percent, and minutes until it is free again. */
export interface UsageHeaders {
  readonly app: string;
  readonly accounts: readonly string[];
}

const wholeOf = (text: string | undefined): number | null =>
  text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : null;

interface SeenBucket {
  readonly bucket: Bucket;
  readonly name: string;
  readonly seconds: number;
  readonly ofApp: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds since the epoch. */
  readonly reset: number;
}

/** No number of seconds from now is as large, and no instant since the epoch as small. */
const firstEpoch = 1_000_000_000;

const resetOf = ({ reset, resetIs }: BucketHeaders, headers: Headers, now: number): number | null => {
  const value = wholeOf(headers[reset]);
  if (value === null) return null;
  return resetIs === 'seconds' && value < firstEpoch ? now + value * 1_000 : value * 1_000;
};

interface Policy {
  readonly limit: number;
  readonly seconds: number;
}

// A parameter that nobody knows may change what the number means.
const policyForm = /^(\d{1,12});\s?w=(\d{1,9})(?:;\s?name="[^"]{0,200}")?$/;

/** The limit that `remaining` and `reset` speak of: the longest with the number that stands first. */
const policyIn = (text: string): Policy | null => {
  const [first = '', ...others] = text.slice(0, 2_000).split(',');
  const inForce = wholeOf(first.trim());
  const policies = (inForce === null ? [first] : others).flatMap((one): Policy[] => {
    const [, limit, seconds] = policyForm.exec(one.trim()) ?? [];
    return limit === undefined ? [] : [{ limit: Number(limit), seconds: Number(seconds) }];
  });
  const fitting = policies.filter(({ limit }) => inForce === null || limit === inForce);
  return fitting.toSorted((a, b) => b.seconds - a.seconds)[0] ?? null;
};

const seenOf = (bucket: Bucket, headers: Headers, now: number): SeenBucket | null => {
  const remaining = wholeOf(headers[bucket.remaining]);
  const reset = resetOf(bucket, headers, now);
  if (remaining === null || reset === null) return null;
  if (!('policy' in bucket)) {
    const limit = wholeOf(headers[bucket.limit]);
    const { name, seconds, ofApp } = bucket;
    return limit === null ? null : { bucket, name, seconds, ofApp, limit, remaining, reset };
  }
  const policy = policyIn(headers[bucket.policy] ?? '');
  const name = policy === null ? undefined : bucket.names[policy.seconds];
  if (policy === null || name === undefined) return null;
  const cost = bucket.perPost ?? 1;
  const posts = (points: number): number => Math.floor(Math.min(points, policy.limit) / cost);
  return {
    ...{ bucket, name, seconds: policy.seconds, ofApp: bucket.ofApp?.includes(policy.seconds) === true, reset },
    ...{ limit: posts(policy.limit), remaining: posts(remaining) },
  };
};

const seenIn = (buckets: readonly Bucket[], headers: Headers, now: number): readonly SeenBucket[] =>
  buckets.flatMap((bucket) => seenOf(bucket, headers, now) ?? []);

/** What an answer to a call that makes a post says about the account. */
export const windowsOf = (buckets: readonly Bucket[], headers: Headers, now: number): readonly ObservedWindow[] =>
  seenIn(buckets, headers, now)
    .filter(({ ofApp }) => !ofApp)
    .map(({ name, seconds, limit, remaining, reset }) => ({
      ...{ name, seconds, limit, used: Math.max(limit - remaining, 0) },
      resetsAt: namedInstant(reset),
    }));

export interface Usage {
  /** Percent of the app's limit, the highest that is named; 0: none is. */
  readonly appPercent: number;
  readonly accountPercent: number;
  /** Milliseconds after which the network takes calls again; null: it does not say. */
  readonly regainMs: number | null;
}

const percents = ['call_count', 'total_time', 'total_cputime'] as const;

const usageEntries = (text: string | undefined): readonly Members[] => {
  const body = text === undefined ? null : parsed(Buffer.from(text.slice(0, 10_000)));
  if (body === null) return [];
  // Of the app the members stand alone; of accounts in a list for each.
  const lists = Object.values(body).flatMap((one: Json): readonly Json[] => (Array.isArray(one) ? one : []));
  return [body, ...lists.map(membersOf).filter((one) => one !== null)];
};

export const usageOf = ({ app, accounts }: UsageHeaders, headers: Headers): Usage => {
  const [ofApp, ofAccount] = [usageEntries(headers[app]), accounts.flatMap((one) => usageEntries(headers[one]))];
  const highest = (entries: readonly Members[]): number =>
    Math.max(0, ...entries.flatMap((one) => percents.map((name) => numberIn(one, name) ?? 0)));
  const minutes = [...ofApp, ...ofAccount].map((one) => numberIn(one, 'estimated_time_to_regain_access') ?? 0);
  const longest = Math.max(0, ...minutes);
  return {
    ...{ appPercent: highest(ofApp), accountPercent: highest(ofAccount) },
    regainMs: longest > 0 ? longest * 60_000 : null,
  };
};

export interface LimitTables {
  readonly buckets: readonly Bucket[];
  readonly usage?: UsageHeaders;
}

export interface Exhausted {
  /** Milliseconds since the epoch, now or later and within a day. */
  readonly until: number;
  /** The same as the network names it. */
  readonly named: number;
  readonly ofApp: boolean;
}

/** No bucket is longer. A wrong header would rest the whole app, which nobody could wake. */
const maxRestMs = 86_400_000;

/** The exhausted bucket that is refilled last; without one, the end of the first where the network names it, else `orElse`. */
export const exhausted = (
  { buckets, usage }: LimitTables,
  headers: Headers,
  now: number,
  orElse: number,
): Exhausted => {
  const seen = seenIn(buckets, headers, now)
    .filter(({ reset }) => reset > now - 1_000)
    // Within a bucket's own length the network refills it, whatever the header says.
    .map((one) => ({ ...one, reset: Math.min(one.reset, now + one.seconds * 1_000) }));
  const empty = seen.filter(({ remaining }) => remaining === 0).sort((a, b) => b.reset - a.reset);
  const last = empty[0] ?? seen.find(({ bucket }) => bucket === buckets[0]);
  const used = usage === undefined ? null : usageOf(usage, headers);
  const regain = used?.regainMs ?? null;
  const after = wholeOf(headers['retry-after']);
  // A wait of no seconds names none.
  const waited = after === null || after === 0 ? orElse : now + after * 1_000;
  const named = last?.reset ?? (regain === null ? waited : now + regain);
  const ofApp = empty[0]?.ofApp === true || (used !== null && used.appPercent >= 100);
  return { until: Math.min(Math.max(named, now), now + maxRestMs), named, ofApp };
};
