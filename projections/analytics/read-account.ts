import { type AccountFigures, type Demographics, dailyPeople } from '#schemas/insights.ts';
import { inWindow, paramsOf, readRollup, spanOf } from './read-grains.ts';
import type { AccountRollup, Beside, Compared, Rollup, Window } from './rollup.ts';
import { type AnalyticsStore, type Cell, isoOf, numberOf, readRows } from './store.ts';
import type { TableName } from './tables.ts';
import { latestOf } from './totals.ts';

/** Reads of one account: the gains of its posts, and the figures that the network reports for the account itself. */

/** The account's own days of the window, oldest first: day, freshest snapshot, followers. */
const accountDays = (name: (table: TableName) => string): string => `
  select day, toUnixTimestamp64Milli(observed_at), follower_count
  from ${name('account_figures_days')}
  where ${inWindow} and account_id = {account:UUID}
  order by day, version desc limit 1 by day`;

/** The figures of the network's own days in the window: day, freshest snapshot, figures. */
const audienceDays = (name: (table: TableName) => string): string => `
  select day, toUnixTimestamp64Milli(observed_at), figures
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

const isOfPeople = (name: Daily): boolean => dailyPeople.some((one) => one === name);

/**
 * Sums of the network's daily figures. Null when no day has the figure; absent when it was never requested. Counts of
 * people by day are valid for a window only where it is one day.
 */
const audienceOf = (days: readonly AccountFigures[], { from, to }: Window): Audience => {
  const sums: { [K in Daily]?: number | null } = {};
  for (const { followerCount: _snapshot, ...figures } of days) {
    for (const [name, value] of Object.entries(figures) as [Daily, number | null][]) {
      const before = sums[name] ?? null;
      const isKnown = value !== null && (from === to || !isOfPeople(name));
      sums[name] = isKnown ? (before ?? 0) + value : before;
    }
  }
  return sums;
};

interface ObservedDay {
  readonly day: string;
  readonly observedAt: string | null;
}

/** The data of an account for two windows and the days between them. */
interface Known {
  readonly own: readonly (ObservedDay & { readonly followers: number | null })[];
  readonly daily: readonly (ObservedDay & { readonly figures: AccountFigures })[];
}

const ofWindow = (
  posts: Rollup,
  known: Known,
  window: Window,
  demographics: AccountRollup['demographics'],
): AccountRollup => {
  const isIn = ({ day }: ObservedDay): boolean => day >= window.from && day <= window.to;
  const [own, daily] = [known.own.filter(isIn), known.daily.filter(isIn)];
  const followers = new Map(own.map((one) => [one.day, one.followers]));
  return {
    // The network reports a day after its end: that report counts as the freshest only where there is nothing else.
    asOf:
      latestOf([posts.asOf, ...own.map(({ observedAt }) => observedAt)]) ??
      latestOf(daily.map(({ observedAt }) => observedAt)),
    totals: { ...posts.totals, followerCount: own.findLast((one) => one.followers !== null)?.followers ?? null },
    series: posts.series.map((day) => ({ ...day, followerCount: followers.get(day.day) ?? null })),
    audience: audienceOf(
      daily.map(({ figures }) => figures),
      window,
    ),
    demographics,
  };
};

export const readAccount = async (
  store: AnalyticsStore,
  workspaceId: string,
  accountId: string,
  window: Window,
  { previous = null, ...beside }: Pick<Beside, 'previous' | 'now'> = {},
): Promise<Compared<AccountRollup>> => {
  const filters = { socialAccountId: accountId };
  const params = paramsOf(workspaceId, spanOf(window, previous), filters);
  const [posts, own, daily, snapshots] = await Promise.all([
    readRollup(store, workspaceId, window, filters, { ...beside, previous }),
    readRows(store, accountDays, params),
    readRows(store, audienceDays, params),
    readRows(store, demographicsNow, params),
  ]);
  const observedDayOf = ([day, observedAt]: readonly Cell[]): ObservedDay => ({
    day: String(day),
    observedAt: isoOf(observedAt),
  });
  const known: Known = {
    own: own.map((cells) => ({ ...observedDayOf(cells), followers: numberOf(cells[2]) })),
    daily: daily.map((cells) => ({ ...observedDayOf(cells), figures: JSON.parse(String(cells[2])) })),
  };
  const snapshot: Cell | undefined = snapshots[0]?.[0];
  const demographics = typeof snapshot === 'string' ? (JSON.parse(snapshot) as Demographics | null) : undefined;
  return {
    ...ofWindow(posts, known, window, demographics),
    previous:
      previous === null || posts.previous === null ? null : ofWindow(posts.previous, known, previous, undefined),
  };
};
