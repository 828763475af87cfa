import { counters } from '#schemas/metrics.ts';
import type { AccountRollup, Rollup, Totals, Window } from './rollup.ts';
import { type Cell, numberOf } from './store.ts';
import { columnOf } from './tables.ts';

/** Sums of gains, from their columns to what is shown. */

/** In this order: the counters, then what the rate is made of. */
export const summed = [...counters.map(columnOf), 'rated_interactions', 'rated_impressions'] as const;

/** A ratio of sums; null where a part is not known, or nothing was shown. */
export const rateOf = (interactions: number | null, impressions: number | null): number | null =>
  interactions === null || impressions === null || impressions <= 0 ? null : interactions / impressions;

/** @param cells those of `summed` */
export const totalsOf = (cells: readonly Cell[]): Totals => {
  const known = Object.fromEntries(counters.map((counter, at) => [counter, numberOf(cells[at])]));
  const rated = cells.slice(counters.length);
  return { ...known, engagementRate: rateOf(numberOf(rated[0]), numberOf(rated[1])) } as Totals;
};

/** Nothing was observed. */
export const noTotals: Totals = totalsOf([]);

/** Days of a window, first to last. */
export const daysOf = ({ from, to }: Window): readonly string[] => {
  const days: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += 86_400_000) {
    days.push(new Date(at).toISOString().slice(0, 10));
  }
  return days;
};

export const noRollup = (window: Window): Rollup => ({
  asOf: null,
  totals: noTotals,
  byPlatform: [],
  series: daysOf(window).map((day) => ({ day, ...noTotals, provisional: false })),
});

export const noAccountRollup = (window: Window): AccountRollup => {
  const none = { ...noTotals, followerCount: null };
  const series = daysOf(window).map((day) => ({ day, ...none, provisional: false }));
  return { asOf: null, totals: none, series, audience: {}, demographics: undefined };
};
