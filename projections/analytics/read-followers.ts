import type { Platform } from '#schemas/common.ts';
import { paramsOf, spanOf, whereOf } from './read-grains.ts';
import type { Filters, Window } from './rollup.ts';
import { type AnalyticsStore, type Cell, isoOf, numberOf, readRows } from './store.ts';
import type { TableName } from './tables.ts';
import { daysOf } from './totals.ts';

/** Followers of many accounts by day, and when each account was last observed. */

export interface Looks {
  /** ISO 8601: the newest observation of each account in the window. */
  readonly accounts: ReadonlyMap<string, string>;
  /**
   * Followers of each network by day: for a day without an observation of an account, its last snapshot in the window
   * counts.
   */
  readonly followers: ReadonlyMap<Platform, ReadonlyMap<string, number>>;
}

/**
 * A row for each network and window: its accounts with their newest observations, the first day with followers, then
 * days and the change of the total on them. Adding up changes carries an account's count over to days without an
 * observation, so the length of an answer depends on the window and not on the number of accounts.
 */
const looksOf =
  (filters: Filters) =>
  (name: (table: TableName) => string): string =>
    `
  select current, platform, groupArray(toString(account_id)), groupArray(seen),
    minOrNullIf(looks[1].1, notEmpty(looks)), sumMap(looks.1, changes) as sums, sums.1, sums.2
  from (
    select account_id, platform, day >= {from:Date} as current, toUnixTimestamp64Milli(max(observed_at)) as seen,
      arraySort(groupArrayIf((day, assumeNotNull(follower_count)), follower_count is not null)) as looks,
      arrayMap((look, n) -> look.2 - if(n = 1, 0, looks[n - 1].2), looks, arrayEnumerate(looks)) as changes
    from ${name('account_figures_days')} final
    where ${['workspace_id = {workspace:UUID}', ...whereOf(filters)].join(' and ')}
      and day between {since:Date} and {to:Date} and (day >= {from:Date} or day <= {until:Date})
    group by account_id, platform, current
  )
  group by current, platform order by current, platform
  settings optimize_move_to_prewhere = 0, max_threads = 1`;

const list = (cell: unknown): readonly Cell[] => cell as readonly Cell[];

/** @param first the first day with followers; null: there is none */
const countsOf = (window: Window, first: Cell | undefined, days: readonly Cell[], changes: readonly Cell[]) => {
  const changed = new Map(days.map((day, at) => [day, numberOf(changes[at]) ?? 0]));
  let count = 0;
  return new Map(
    daysOf(window).flatMap((day) => {
      count += changed.get(day) ?? 0;
      return first === null || first === undefined || day < first ? [] : [[day, count] as const];
    }),
  );
};

const ofWindow = (rows: readonly (readonly Cell[])[], window: Window): Looks => ({
  accounts: new Map(
    rows.flatMap(([, , ids, seen]) => list(ids).map((id, at) => [String(id), isoOf(list(seen)[at]) ?? ''] as const)),
  ),
  followers: new Map(
    rows.map(([, platform, , , first, , days, changes]) => [
      platform as Platform,
      countsOf(window, first, list(days), list(changes)),
    ]),
  ),
});

/** Reads followers and newest observations of the window, and of the previous one where the caller compares. */
export const readLooks = async (
  store: AnalyticsStore,
  workspaceId: string,
  window: Window,
  filters: Filters,
  previous: Window | null,
): Promise<{ readonly current: Looks; readonly previous: Looks | null }> => {
  const { from: since } = spanOf(window, previous);
  // Without a previous window, no day precedes this one.
  const params = { ...paramsOf(workspaceId, window, filters), since, until: previous?.to ?? window.from };
  const rows = await readRows(store, looksOf(filters), params);
  const of = (wanted: number) => rows.filter(([current]) => Number(current) === wanted);
  return { current: ofWindow(of(1), window), previous: previous === null ? null : ofWindow(of(0), previous) };
};
