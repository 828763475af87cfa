import type { AccountFigures, Demographics } from '#schemas/metrics.ts';
import type { AccountRollup, Filters, OfDay, OfPlatform, Rollup, Window } from './rollup.ts';
import { type AnalyticsStore, type Cell, isoOf, numberOf, readRows } from './store.ts';
import type { TableName } from './tables.ts';
import { daysOf, noTotals, summed, totalsOf } from './totals.ts';

/** Reads of the daily grains. The newest version of a row counts; the rows of one grain are few. */

interface Grain {
  readonly table: TableName;
  readonly where: readonly string[];
}

/** The smallest grain that tells what the filters leave. */
const grainOf = ({ clientId, socialAccountId, platforms }: Filters): Grain => {
  const where = [
    ...(socialAccountId === undefined ? [] : ['account_id = {account:UUID}']),
    ...(clientId === undefined ? [] : ['client_id = {client:UUID}']),
    ...(platforms === undefined ? [] : ['platform in {platforms:Array(String)}']),
  ];
  if (socialAccountId !== undefined) return { table: 'account_days', where };
  return { table: clientId === undefined ? 'workspace_days' : 'client_days', where };
};

const paramsOf = (workspaceId: string, { from, to }: Window, filters: Filters) => ({
  workspace: workspaceId,
  from,
  to,
  ...(filters.platforms === undefined ? {} : { platforms: filters.platforms }),
  ...(filters.clientId === undefined ? {} : { client: filters.clientId }),
  ...(filters.socialAccountId === undefined ? {} : { account: filters.socialAccountId }),
});

const inWindow = 'workspace_id = {workspace:UUID} and day between {from:Date} and {to:Date}';

/**
 * Sums by day, by platform and of all: cells are kind, day, platform, freshest snapshot, those of `summed`, and whether a
 * later look may still change them. FINAL is
 * what costs least here, and only here: a grain has one row for each day and network, found by its key.
 */
const sumsOf =
  ({ table, where }: Grain) =>
  (name: (table: TableName) => string): string =>
    `
  select multiIf(grouping(day) = 0, 'day', grouping(platform) = 0, 'platform', 'all'), day, platform,
    toUnixTimestamp64Milli(max(observed_at)), ${summed.map((column) => `sum(${column})`).join(', ')},
    max(open_until) > now64(3)
  from ${name(table)} final
  where ${[inWindow, ...where, 'targets > 0'].join(' and ')}
  group by grouping sets ((day), (platform), ())
  having count() > 0
  order by 1, 2, 3`;

/**
 * A day that is not there is null in every member. The look that a day waits for tells of the days after it, too: so each
 * day from the first one that waits is provisional.
 */
const seriesOf = (window: Window, found: ReadonlyMap<string, readonly Cell[]>): OfDay[] => {
  let provisional = false;
  return daysOf(window).map((day) => {
    const cells = found.get(day);
    provisional ||= Number(cells?.[4 + summed.length] ?? 0) === 1;
    return { day, ...(cells === undefined ? noTotals : totalsOf(cells.slice(4))), provisional };
  });
};

export const readRollup = async (
  store: AnalyticsStore,
  workspaceId: string,
  window: Window,
  filters: Filters,
): Promise<Rollup> => {
  const rows = await readRows(store, sumsOf(grainOf(filters)), paramsOf(workspaceId, window, filters));
  const ofKind = (kind: string) => rows.filter(([one]) => one === kind);
  const [all = []] = ofKind('all');
  const days = new Map(ofKind('day').map((cells) => [String(cells[1]), cells]));
  return {
    asOf: isoOf(all[3]),
    totals: totalsOf(all.slice(4)),
    byPlatform: ofKind('platform').map((cells) => ({ platform: cells[2], ...totalsOf(cells.slice(4)) }) as OfPlatform),
    series: seriesOf(window, days),
  };
};

/** The account's own days of the window, oldest first: day, freshest snapshot, followers. */
const accountDays = (name: (table: TableName) => string): string => `
  select day, toUnixTimestamp64Milli(observed_at), follower_count
  from ${name('account_figures_days')}
  where ${inWindow} and account_id = {account:UUID}
  order by day, version desc limit 1 by day`;

/** What the network told of its own days of the window: freshest snapshot, figures. */
const audienceDays = (name: (table: TableName) => string): string => `
  select toUnixTimestamp64Milli(observed_at), figures
  from ${name('account_audience_days')}
  where ${inWindow} and account_id = {account:UUID}
  order by day, version desc limit 1 by day`;

/** The newest snapshot up to the end of the window, however old. */
const demographicsNow = (name: (table: TableName) => string): string => `
  select demographics from (
    select day, demographics from ${name('account_figures_days')}
    where workspace_id = {workspace:UUID} and account_id = {account:UUID} and day <= {to:Date}
    order by day desc, version desc limit 1 by day
  ) where demographics != '' order by day desc limit 1`;

type Audience = AccountRollup['audience'];
type Daily = keyof Audience;

/** Sums of what the network told of each day. Null when it told none of them; absent when it was never asked. */
const audienceOf = (days: readonly AccountFigures[]): Audience => {
  const sums: { [K in Daily]?: number | null } = {};
  for (const { followerCount: _snapshot, ...figures } of days) {
    for (const [name, value] of Object.entries(figures) as [Daily, number | null][]) {
      const before = sums[name] ?? null;
      sums[name] = value === null ? before : (before ?? 0) + value;
    }
  }
  return sums;
};

const latest = (...instants: readonly (string | null)[]): string | null =>
  instants
    .filter((one) => one !== null)
    .sort()
    .at(-1) ?? null;

export const readAccount = async (
  store: AnalyticsStore,
  workspaceId: string,
  accountId: string,
  window: Window,
): Promise<AccountRollup> => {
  const params = paramsOf(workspaceId, window, { socialAccountId: accountId });
  const [posts, own, daily, snapshots] = await Promise.all([
    readRollup(store, workspaceId, window, { socialAccountId: accountId }),
    readRows(store, accountDays, params),
    readRows(store, audienceDays, params),
    readRows(store, demographicsNow, params),
  ]);
  const followers = new Map(own.map((cells) => [String(cells[0]), numberOf(cells[2])]));
  const figures = daily.map((cells): AccountFigures => JSON.parse(String(cells[1])));
  const counts: readonly (number | null)[] = [...followers.values()];
  const demographics: Cell | undefined = snapshots[0]?.[0];
  return {
    // What is told of a day comes after it: only where there is nothing else that is the freshest.
    asOf:
      latest(posts.asOf, ...own.map((cells) => isoOf(cells[1]))) ?? latest(...daily.map((cells) => isoOf(cells[0]))),
    totals: { ...posts.totals, followerCount: counts.findLast((count) => count !== null) ?? null },
    series: posts.series.map((day) => ({ ...day, followerCount: followers.get(day.day) ?? null })),
    audience: audienceOf(figures),
    demographics: typeof demographics === 'string' ? (JSON.parse(demographics) as Demographics | null) : undefined,
  };
};
