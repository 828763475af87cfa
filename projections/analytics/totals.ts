import { type CounterName, counters, peopleCounters } from '#schemas/insights.ts';
import type { AccountRollup, Rollup, Totals, Window } from './rollup.ts';
import { type Cell, numberOf } from './store.ts';
import { columnOf } from './tables.ts';

/** Turns the columns of gains into the shown sums. */

const isOfPeople = (counter: CounterName): boolean => peopleCounters.some((one) => one === counter);
const added = counters.filter((counter) => !isOfPeople(counter));

/** The order of the columns: the counters that add up, then the parts of the rate. */
export const summed = [...added.map(columnOf), 'rated_interactions', 'rated_impressions'] as const;

/** A ratio of sums; null where a part is unknown or impressions are 0. */
export const rateOf = (interactions: number | null, impressions: number | null): number | null =>
  interactions === null || impressions === null || impressions <= 0 ? null : interactions / impressions;

/** Whether the n-th counter was fetched. */
export const isFetched = (fetched: number, bit: number): boolean => ((fetched >>> bit) & 1) === 1;

const places = counters.map((counter) => added.indexOf(counter));

/**
 * A counter without a sum is null where it was fetched, the counts of people included, and absent where it was not.
 * @param cells the columns of `summed`
 * @param fetched bit n: the n-th counter was fetched
 */
export const totalsOf = (cells: readonly Cell[], fetched: number): Totals => {
  const totals: Partial<Record<CounterName, number | null>> = {};
  for (const [bit, counter] of counters.entries()) {
    const sum = numberOf(cells[places[bit] ?? -1]);
    if (sum !== null || isFetched(fetched, bit)) totals[counter] = sum;
  }
  const rated = cells.slice(added.length);
  return { ...totals, engagementRate: rateOf(numberOf(rated[0]), numberOf(rated[1])) };
};

/** No observation was made. */
export const noTotals: Totals = totalsOf([], 0);

/** The latest of these instants in ISO 8601. */
export const latestOf = (instants: readonly (string | null)[]): string | null =>
  instants
    .filter((one) => one !== null)
    .sort()
    .at(-1) ?? null;

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
