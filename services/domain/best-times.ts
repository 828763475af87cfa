import { Temporal } from 'temporal-polyfill';
import { platforms as allPlatforms, type Platform } from '#schemas/common.ts';
import type { PriorTimes } from './platforms/prior-times.ts';
import { rulesOf } from './platforms/registry.ts';

/**
 * When to post: the result of the posts of each hour and weekday, compared with the usual result of their accounts, and
 * mixed with assumptions about the network until there are enough posts.
 */

/** Posts of different kinds usually get different results, so a post is compared only with posts of its own kind. */
export type PostKind = 'feed' | 'reel' | 'story';

/** A post as one of its accounts had it, at its newest observation of an age of `comparedAgeMs` or less. */
export interface ObservedPost {
  readonly postId: string;
  readonly accountId: string;
  readonly platform: Platform;
  readonly kind: PostKind;
  /** ISO 8601. */
  readonly publishedAt: string;
  /** ISO 8601. */
  readonly observedAt: string;
  readonly interactions: number | null;
}

const hourMs = 3_600_000;

/**
 * A post gathers interactions for months, so posts are compared at the same age. Otherwise an old post would beat a new
 * one by age alone.
 */
export const comparedAgeMs = 7 * 24 * hourMs;

/**
 * A younger post lacks too many of its later interactions to count. Networks report a story only during its one day.
 */
const minAgeMs: Readonly<Record<PostKind, number>> = { feed: 48 * hourMs, reel: 48 * hourMs, story: 20 * hourMs };

export interface Slot {
  /** 1 = Monday. */
  readonly weekday: number;
  readonly hour: number;
  /** 0 to 1; 0.5 is an average time. */
  readonly score: number;
  /** Expected engagement as a multiple of the usual. */
  readonly lift: number;
  /** Posts that went out in this very slot. */
  readonly sampleSize: number;
  /** `prior`: no post of this slot was observed. */
  readonly basis: 'observed' | 'prior';
}

/**
 * Bounds the result of one post to a few times the usual, and to the inverse of that, because a viral post says little
 * about its hour.
 */
const maxLog = Math.log(4);

/** How many posts give their mean half of the weight: posts of an hour, of a weekday, of a slot of the week. */
const half = { hour: 8, weekday: 20, slot: 16 } as const;

/**
 * The weight grows with the square of the number of posts: three posts have almost none, three times that half number
 * almost all.
 */
const credibility = (posts: number, halfAt: number): number => posts ** 2 / (posts ** 2 + halfAt ** 2);

const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
};

/**
 * Added to each count. For an account that usually gets no interactions, one like is chance and must not count as a
 * multiple.
 */
const chance = 3;

/**
 * Slot of the week, 0 to 167, in a zone. Offsets change at whole quarters of an hour, so the function computes each
 * quarter once.
 */
const slotsIn = (timezone: string): ((instant: string) => number) => {
  const known = new Map<number, number>();
  return (instant) => {
    const quarter = Math.floor(Date.parse(instant) / 900_000);
    const found = known.get(quarter);
    if (found !== undefined) return found;
    const at = Temporal.Instant.fromEpochMilliseconds(quarter * 900_000).toZonedDateTimeISO(timezone);
    const slot = (at.dayOfWeek - 1) * 24 + at.hour;
    known.set(quarter, slot);
    return slot;
  };
};

const logMean = (times: readonly PriorTimes[], slot: number): number => {
  const logs = times.map(({ hours, weekdays }) =>
    Math.log((hours[slot % 24] ?? 1) * (weekdays[Math.floor(slot / 24)] ?? 1)),
  );
  return logs.reduce((sum, one) => sum + one, 0) / logs.length;
};

/** Mean and number of values by group. */
class Means {
  readonly #sums = new Map<number, { sum: number; count: number }>();
  add(group: number, value: number): void {
    const { sum, count } = this.#sums.get(group) ?? { sum: 0, count: 0 };
    this.#sums.set(group, { sum: sum + value, count: count + 1 });
  }
  count(group: number): number {
    return this.#sums.get(group)?.count ?? 0;
  }
  /** The mean of the group, weighted by its number of posts. */
  believed(group: number, halfAt: number): number {
    const { sum, count } = this.#sums.get(group) ?? { sum: 0, count: 0 };
    return count === 0 ? 0 : (sum / count) * credibility(count, halfAt);
  }
}

const weekSlots = Array.from({ length: 168 }, (_, slot) => slot);
const rounded = (value: number): number => Math.round(value * 10_000) / 10_000;

/**
 * All slots of the week, strongest first.
 * @param options.timezone the zone of weekdays and hours
 * @param options.platforms the networks whose prior holds; empty: all
 */
export const bestTimes = (
  posts: readonly ObservedPost[],
  { timezone, platforms }: { readonly timezone: string; readonly platforms: readonly Platform[] },
): readonly Slot[] => {
  const slotOf = slotsIn(timezone);
  // The interactions of each post, beyond the prior of its network. A rate would measure how engaged the viewers were,
  // and so rank a post that few saw above a post that many answered. This ranking counts how many answered.
  const measured = posts.flatMap(({ postId, accountId, platform, kind, publishedAt, observedAt, interactions }) => {
    if (interactions === null || Date.parse(observedAt) - Date.parse(publishedAt) < minAgeMs[kind]) return [];
    const slot = slotOf(publishedAt);
    const log = Math.log(interactions + chance) - logMean([rulesOf(platform).priorTimes], slot);
    return [{ postId, slot, peers: `${accountId} ${kind}`, log }];
  });
  // The median is taken after the prior is subtracted, because an account that always posts at one time gives no
  // evidence about that time.
  const usual = new Map(
    [...Map.groupBy(measured, ({ peers }) => peers)].map(([peers, some]) => [
      peers,
      median(some.map(({ log }) => log)),
    ]),
  );
  const beyonds = measured.map(({ postId, slot, peers, log }) => {
    const beyond = log - (usual.get(peers) ?? log);
    return { postId, slot, beyond: Math.max(-maxLog, Math.min(maxLog, beyond)) };
  });
  // A post that went out on many accounts at once counts as one post, because its luck is the same everywhere. Each
  // level explains the part that the level before left.
  let left = [...Map.groupBy(beyonds, ({ postId, slot }) => `${slot} ${postId}`).values()].map((targets) => ({
    slot: targets[0]?.slot ?? 0,
    beyond: targets.reduce((sum, { beyond }) => sum + beyond, 0) / targets.length,
  }));
  const levels = [
    { halfAt: half.hour, groupOf: (slot: number) => slot % 24 },
    { halfAt: half.weekday, groupOf: (slot: number) => Math.floor(slot / 24) },
    { halfAt: half.slot, groupOf: (slot: number) => slot },
  ].map(({ halfAt, groupOf }) => {
    const means = new Means();
    for (const { slot, beyond } of left) means.add(groupOf(slot), beyond);
    const believed = (slot: number) => means.believed(groupOf(slot), halfAt);
    left = left.map(({ slot, beyond }) => ({ slot, beyond: beyond - believed(slot) }));
    return { believed, means };
  });
  const priors = (platforms.length === 0 ? allPlatforms : platforms).map((platform) => rulesOf(platform).priorTimes);
  return (
    weekSlots
      .map((slot) => {
        const log = levels.reduce((sum, { believed }) => sum + believed(slot), logMean(priors, slot));
        // What is shown is what is sorted by, so that a page can begin behind a slot that was shown.
        const lift = Math.exp(log);
        return {
          slot,
          lift: rounded(lift),
          score: rounded(lift / (1 + lift)),
          sampleSize: levels.at(-1)?.means.count(slot) ?? 0,
        };
      })
      // Equal slots stay in the order of the week, because the sort is stable.
      .sort((a, b) => b.lift - a.lift)
      .map(({ slot, lift, score, sampleSize }) => ({
        weekday: Math.floor(slot / 24) + 1,
        hour: slot % 24,
        score,
        lift,
        sampleSize,
        basis: sampleSize === 0 ? 'prior' : 'observed',
      }))
  );
};
