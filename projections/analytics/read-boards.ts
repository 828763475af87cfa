import type { Platform } from '#schemas/common.ts';
import { type Looks, readLooks } from './read-followers.ts';
import { readRollup } from './read-grains.ts';
import type { Beside, Board, Compared, Filters, Followers, OfDay, Rollup, Window } from './rollup.ts';
import type { AnalyticsStore } from './store.ts';
import { latestOf, noRollup } from './totals.ts';

/** The board of a workspace or a client: sums of its posts beside the followers of its accounts. */

type Counts = ReadonlyMap<string, number>;

const followed = <T extends object>(figures: T, count: number | undefined): T & Followers => ({
  ...figures,
  followerCount: count ?? null,
});

/** By day, over all networks that report followers. */
const sumOf = (followers: Looks['followers']): Counts => {
  const sums = new Map<string, number>();
  for (const counts of followers.values()) for (const [day, n] of counts) sums.set(day, (sums.get(day) ?? 0) + n);
  return sums;
};

const daysWith = (series: readonly OfDay[], counts: Counts | undefined) =>
  series.map((day) => followed(day, counts?.get(day.day)));

/** A network without figures of posts is listed with its followers. */
const boardOf = (rollup: Rollup, { accounts, followers }: Looks, window: Window, networks: boolean): Board => {
  const { totals, series } = noRollup(window);
  const byPlatform = new Map(rollup.byPlatform.map((one) => [one.platform, one]));
  const platforms: readonly Platform[] = [...new Set([...byPlatform.keys(), ...followers.keys()])].sort();
  const all = sumOf(followers);
  return {
    asOf: latestOf([rollup.asOf, ...accounts.values()]),
    totals: followed(rollup.totals, all.get(window.to)),
    byPlatform: platforms.map((platform) => {
      const { series: days = series, ...figures } = byPlatform.get(platform) ?? { platform, ...totals };
      const counts = followers.get(platform);
      return followed({ ...figures, ...(networks ? { series: daysWith(days, counts) } : {}) }, counts?.get(window.to));
    }),
    series: daysWith(rollup.series, all),
    accounts,
  };
};

/** A board without data. */
export const noBoard = (window: Window, { previous = null }: Beside = {}): Compared<Board> => {
  const none = (days: Window) => boardOf(noRollup(days), { accounts: new Map(), followers: new Map() }, days, false);
  return { ...none(window), previous: previous === null ? null : none(previous) };
};

export const readBoard = async (
  store: AnalyticsStore,
  workspaceId: string,
  window: Window,
  filters: Filters,
  beside: Beside = {},
): Promise<Compared<Board>> => {
  const { previous = null, networks = false } = beside;
  const [posts, looks] = await Promise.all([
    readRollup(store, workspaceId, window, filters, beside),
    readLooks(store, workspaceId, window, filters, previous),
  ]);
  const isCompared = previous !== null && posts.previous !== null && looks.previous !== null;
  return {
    ...boardOf(posts, looks.current, window, networks),
    previous: isCompared ? boardOf(posts.previous, looks.previous, previous, networks) : null,
  };
};
