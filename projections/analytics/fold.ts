import type { Platform } from '#schemas/common.ts';
import type { OfDay, OfPlatform, Rollup, Totals, Window } from './rollup.ts';
import { type Cell, numberOf } from './store.ts';
import { daysOf, noTotals, summed, totalsOf } from './totals.ts';

/**
 * Folds the rows of a grain, one for each day and network, into the result for a window. This process adds up, not
 * ClickHouse: the rows are few, and planning sums by day, by network and in total takes longer than reading them.
 */

export interface GrainRow {
  readonly day: string;
  readonly platform: Platform;
  /** Milliseconds since the epoch. */
  readonly observedAt: number;
  /** A later observation may still change the day. */
  readonly isOpen: boolean;
  /** Bit n: the n-th counter was fetched. */
  readonly fetched: number;
  /** The columns of `summed`. */
  readonly cells: readonly Cell[];
}

type Sums = readonly (number | null)[];

/** Null: no row has a value. */
const sumsOf = (rows: readonly GrainRow[]): Sums => {
  const sums: (number | null)[] = summed.map(() => null);
  for (const { cells } of rows) {
    for (let at = 0; at < sums.length; at += 1) {
      const cell = numberOf(cells[at]);
      if (cell !== null) sums[at] = (sums[at] ?? 0) + cell;
    }
  }
  return sums;
};

const fetchedOf = (rows: readonly GrainRow[]): number => rows.reduce((bits, { fetched }) => bits | fetched, 0);

const added = (rows: readonly GrainRow[]): Totals => totalsOf(sumsOf(rows), fetchedOf(rows));

/**
 * A day without a row has no counter. The observation that an open day waits for also changes the days after it: each
 * day from the first open one is provisional, wherever the window begins.
 * @param all rows of days in and out of the window
 */
const seriesOf = (all: readonly GrainRow[], window: Window): readonly OfDay[] => {
  const byDay = Map.groupBy(all, ({ day }) => day);
  let provisional = all.some(({ day, isOpen }) => isOpen && day < window.from);
  return daysOf(window).map((day) => {
    const found = byDay.get(day);
    provisional ||= found?.some(({ isOpen }) => isOpen) ?? false;
    return { day, ...(found === undefined ? noTotals : added(found)), provisional };
  });
};

const inOrder = ([one]: readonly [Platform, unknown], [other]: readonly [Platform, unknown]): number =>
  one < other ? -1 : 1;

/** @param all rows of days in and out of the window */
export const rollupOf = (all: readonly GrainRow[], window: Window, networks: boolean): Rollup => {
  const rows = all.filter(({ day }) => day >= window.from && day <= window.to);
  const byPlatform = [...Map.groupBy(rows, ({ platform }) => platform)].sort(inOrder);
  const known = Map.groupBy(all, ({ platform }) => platform);
  const newest = rows.reduce((last, { observedAt }) => Math.max(last, observedAt), -Infinity);
  return {
    asOf: rows.length === 0 ? null : new Date(newest).toISOString(),
    totals: added(rows),
    byPlatform: byPlatform.map(([platform, its]): OfPlatform => {
      const series = networks ? { series: seriesOf(known.get(platform) ?? its, window) } : {};
      return { platform, ...added(its), ...series };
    }),
    series: seriesOf(all, window),
  };
};
