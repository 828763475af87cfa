import type { Platform } from '#schemas/common.ts';
import { type GrainRow, rollupOf } from './fold.ts';
import type { Beside, Compared, Filters, Rollup, Window } from './rollup.ts';
import { type AnalyticsStore, readRows } from './store.ts';
import type { TableName } from './tables.ts';
import { summed } from './totals.ts';

/** Reads of the daily grains. The newest version of a row counts; one grain has few rows. */

interface Grain {
  readonly table: TableName;
  readonly where: readonly string[];
}

export const whereOf = ({ clientId, socialAccountId, platforms }: Filters): readonly string[] => [
  ...(socialAccountId === undefined ? [] : ['account_id = {account:UUID}']),
  ...(clientId === undefined ? [] : ['client_id = {client:UUID}']),
  ...(platforms === undefined ? [] : ['platform in {platforms:Array(String)}']),
];

/** The smallest grain that answers the filters. */
const grainOf = (filters: Filters): Grain => {
  const { clientId, socialAccountId } = filters;
  const where = whereOf(filters);
  if (socialAccountId !== undefined) return { table: 'account_days', where };
  return { table: clientId === undefined ? 'workspace_days' : 'client_days', where };
};

export const paramsOf = (workspaceId: string, { from, to }: Window, filters: Filters) => ({
  workspace: workspaceId,
  from,
  to,
  ...(filters.platforms === undefined ? {} : { platforms: filters.platforms }),
  ...(filters.clientId === undefined ? {} : { client: filters.clientId }),
  ...(filters.socialAccountId === undefined ? {} : { account: filters.socialAccountId }),
});

export const inWindow = 'workspace_id = {workspace:UUID} and day between {from:Date} and {to:Date}';

/**
 * Cells are day, network, newest observation, whether the day is open, the fetched counters, then the columns of
 * `summed`. FINAL is cheapest here, and only here: a grain has one row for each day and network. The primary key answers
 * the whole condition; a PREWHERE would cost ClickHouse the most time.
 */
const rowsOf =
  ({ table, where }: Grain) =>
  (name: (table: TableName) => string): string =>
    `
  select day, platform, toUnixTimestamp64Milli(observed_at), open_until > fromUnixTimestamp64Milli({now:Int64}, 'UTC'), fetched, ${summed.join(', ')}
  from ${name(table)} final
  where ${[inWindow, ...where, 'targets > 0'].join(' and ')}
  settings optimize_move_to_prewhere = 0, max_threads = 1`;

/** Both windows and the days between them. */
export const spanOf = (window: Window, previous: Window | null = null): Window => ({
  from: previous?.from ?? window.from,
  to: window.to,
});

/**
 * A day waits for the next observation at most this long, and the days after it wait too: open days may precede a
 * window.
 */
const openDays = 2;

const daysBefore = (day: string, days: number): string =>
  new Date(Date.parse(day) - days * 86_400_000).toISOString().slice(0, 10);

export const readRollup = async (
  store: AnalyticsStore,
  workspaceId: string,
  window: Window,
  filters: Filters,
  { previous = null, networks = false, now = Date.now() }: Beside = {},
): Promise<Compared<Rollup>> => {
  const { from, to } = spanOf(window, previous);
  const params = { ...paramsOf(workspaceId, { from: daysBefore(from, openDays), to }, filters), now };
  const found = await readRows(store, rowsOf(grainOf(filters)), params);
  const rows = found.map(
    ([day, platform, observedAt, isOpen, fetched, ...cells]): GrainRow => ({
      day: String(day),
      platform: platform as Platform,
      observedAt: Number(observedAt),
      isOpen: Number(isOpen) === 1,
      fetched: Number(fetched),
      cells,
    }),
  );
  return {
    ...rollupOf(rows, window, networks),
    previous: previous === null ? null : rollupOf(rows, previous, networks),
  };
};
