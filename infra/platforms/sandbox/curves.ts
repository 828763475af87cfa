/**
 * Views of a post or an account over time: pure functions of an id and a time, so that two requests at one instant get
 * the same answer and nothing is stored.
 */
import { createHash } from 'node:crypto';

export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

/** A number from 0 to 1, the same for the same words. */
export const chance = (...words: readonly (string | number)[]): number =>
  createHash('sha256').update(words.join('\n')).digest().readUIntBE(0, 6) / 2 ** 48;

const between = (low: number, high: number, at: number): number => low + (high - low) * at;

/** Networks correct their counts: on one day in fifteen the count loses a fiftieth. */
const corrected = (id: string, ageMs: number): number => {
  let left = 1;
  for (let day = 2; day <= Math.min(ageMs / dayMs, 100); day += 1)
    if (chance(id, 'correction', day) < 1 / 15) left *= 0.98;
  return left;
};

/** Counts of one post. Each is a fixed part of the views at any age, so that a smaller count stays smaller. */
export interface Counting {
  readonly views: number;
  /** @param low, high the bounds of this post's part of the views, 0 to 1 */
  part(name: string, low: number, high: number): number;
  /** A number that does not change with the age of the post. */
  fixed(name: string, low: number, high: number): number;
}

/** @param spreadMs milliseconds in which two thirds of all views come */
export function countingOf(spreadMs: number, id: string, ageMs: number): Counting {
  const age = Math.max(ageMs, 0);
  const total = Math.exp(between(Math.log(300), Math.log(30_000), chance(id, 'total')));
  const seen = total * (1 - Math.exp(-age / spreadMs)) * corrected(id, age);
  const fixed: Counting['fixed'] = (name, low, high) => between(low, high, chance(id, name));
  return {
    views: Math.floor(seen),
    part: (name, low, high) => Math.floor(Math.floor(seen) * fixed(name, low, high)),
    fixed,
  };
}

const epochMs = Date.UTC(2025, 0, 1);

/** The followers of an account: they grow by about a thousandth a day, and fall a little on some days. */
export function followersOf(id: string, nowMs: number): number {
  const start = Math.exp(between(Math.log(400), Math.log(40_000), chance(id, 'followers')));
  const days = Math.max((nowMs - epochMs) / dayMs, 0);
  const drift = 1 + days * between(0.0002, 0.0015, chance(id, 'growth'));
  const mood = 1 + between(-0.003, 0.003, chance(id, 'mood', Math.floor(days)));
  return Math.floor(start * drift * mood);
}

/**
 * Counts of an account for one of the network's own days. @param revised the counts of a day grow on the days after it
 */
export function countingOfDay(id: string, nowMs: number, daysAgo: number, revised: boolean): Counting {
  const day = Math.floor(nowMs / dayMs) - daysAgo;
  const found = revised ? 1 + Math.min(daysAgo - 1, 3) / 100 : 1;
  const views = Math.floor(followersOf(id, day * dayMs) * between(0.2, 0.6, chance(id, 'views', day)) * found);
  const fixed: Counting['fixed'] = (name, low, high) => between(low, high, chance(id, name, day));
  return { views, part: (name, low, high) => Math.floor(views * fixed(name, low, high)), fixed };
}

/** Cuts a whole into parts by weight; the first part takes the remainder. */
export function cut(whole: number, weights: Readonly<Record<string, number>>): Record<string, number> {
  const sum = Object.values(weights).reduce((all, one) => all + one, 0);
  const parts = Object.entries(weights).map(([label, weight]) => [label, Math.floor((whole * weight) / sum)] as const);
  const rest = whole - parts.reduce((all, [, part]) => all + part, 0);
  return Object.fromEntries(parts.map(([label, part], place) => [label, place === 0 ? part + rest : part]));
}

/** Shares of a video still watched at equal steps of its length. */
export const retention = (counting: Counting, steps: number): readonly number[] => {
  const fall = counting.fixed('retention', 0.5, 2.5);
  return Array.from({ length: steps }, (_, step) => Math.round(Math.exp((-fall * step) / steps) * 1000) / 1000);
};

export const watching = (counting: Counting) => {
  const views = counting.part('video views', 0.3, 0.7);
  const averageMs = Math.floor(counting.fixed('watched', 4_000, 40_000));
  return { views, averageMs, watchedMs: views * averageMs };
};
