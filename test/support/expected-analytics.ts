/** The expected results of analytics reads, counted from observations alone, in the plainest way. */
import type {
  AccountRollup,
  Board,
  Compared,
  Followers,
  PostFiguresRow,
  Rollup,
  Totals,
  Window,
} from '#projections/analytics/rollup.ts';
import { columnOf } from '#projections/analytics/tables.ts';
import type { Platform } from '#schemas/common.ts';
import { type AccountFigures, counters, type Demographics, type PostFigures } from '#schemas/insights.ts';
import { foldedFigures, type Seen, type Sums, sumsBy, targetDays } from './observations.ts';

/** A network's answer about an account. */
export interface SeenAccount {
  readonly workspaceId: string;
  readonly accountId: string;
  readonly clientId: string;
  readonly platform: Platform;
  readonly day: string;
  /** ISO 8601 */
  readonly observedAt: string;
  readonly figures: AccountFigures;
  /** The network's own day of its daily figures; null: it reports none. */
  readonly figuresDay: string | null;
  /** Absent: not requested. */
  readonly demographics?: Demographics | null;
}

/** The last observation of each day of each of these. */
export const lastOfDays = <One extends { readonly day: string; readonly observedAt: string }>(
  all: readonly One[],
  keyOf: (one: One) => string,
): readonly One[] => {
  const last = new Map<string, One>();
  for (const one of all) {
    const key = `${keyOf(one)} ${one.day}`;
    const before = last.get(key);
    if (before === undefined || before.observedAt < one.observedAt) last.set(key, one);
  }
  return [...last.values()];
};

const latestOf = (all: readonly { readonly observedAt: string }[]): string | null =>
  all
    .map(({ observedAt }) => observedAt)
    .sort()
    .at(-1) ?? null;

const totalsOf = (sums: Sums = {}): Totals => {
  const { rated_interactions: interactions = null, rated_impressions: impressions = null } = sums;
  const rate = interactions === null || impressions === null || impressions <= 0 ? null : interactions / impressions;
  // People do not add up.
  const fetched = counters.filter((_one, bit) => Math.floor((sums.fetched ?? 0) / 2 ** bit) % 2 === 1);
  const known = Object.fromEntries(fetched.map((one) => [one, one === 'reach' ? null : (sums[columnOf(one)] ?? null)]));
  return { ...known, engagementRate: rate } as Totals;
};

const daysOf = ({ from, to }: Window): readonly string[] => {
  const days: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += 86_400_000)
    days.push(new Date(at).toISOString().slice(0, 10));
  return days;
};

/** By whose days, and at which instant of the clock that dates the figures, an answer was given. */
export interface Reading {
  /** Of the workspace. */
  readonly zone: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** @param isOf whether the observation that decides a day's owner belongs to the query */
export const expectedRollup = (
  all: readonly Seen[],
  isOf: (seen: Seen) => boolean,
  window: Window,
  { zone, now }: Reading,
): Compared<Rollup> => {
  const shown = targetDays(all, zone).filter(
    ({ seen }) => seen.day >= window.from && seen.day <= window.to && isOf(seen),
  );
  const days = sumsBy(shown, ({ day }) => day);
  const networks = sumsBy(shown, ({ platform }) => platform);
  const open = shown
    .filter(({ openUntil }) => openUntil > now)
    .map(({ seen }) => seen.day)
    .sort();
  return {
    asOf: latestOf(shown),
    totals: totalsOf(sumsBy(shown, () => 'all').get('all')),
    byPlatform: [...networks.keys()]
      .sort()
      .map((platform) => ({ platform: platform as Platform, ...totalsOf(networks.get(platform)) })),
    series: daysOf(window).map((day) => ({
      day,
      ...totalsOf(days.get(day)),
      provisional: open[0] !== undefined && day >= open[0],
    })),
    previous: null,
  };
};

/** Followers of each network, or of all, by day: the last value of each account up to the day. */
const followersBy = (own: readonly SeenAccount[], { from, to }: Window) => {
  const looks = lastOfDays(own, ({ accountId }) => accountId).filter(({ day }) => day >= from && day <= to);
  return (day: string, platform?: string): number | null => {
    const last = new Map<string, SeenAccount>();
    for (const look of looks.toSorted((a, b) => (a.day < b.day ? -1 : 1))) {
      const isOf = look.day <= day && (platform === undefined || look.platform === platform);
      if (isOf && typeof look.figures.followerCount === 'number') last.set(look.accountId, look);
    }
    if (last.size === 0) return null;
    return [...last.values()].reduce((sum, { figures }) => sum + (figures.followerCount ?? 0), 0);
  };
};

/** @param own of the accounts in the query */
export const expectedBoard = (
  all: readonly Seen[],
  own: readonly SeenAccount[],
  isOf: (seen: Seen) => boolean,
  window: Window,
  reading: Reading,
): Compared<Board> => {
  const rollup = expectedRollup(all, isOf, window, reading);
  const followersOf = followersBy(own, window);
  const looks = own.filter(({ day }) => day >= window.from && day <= window.to);
  const accounts = new Map(
    [...Map.groupBy(looks, ({ accountId }) => accountId)].map(([id, its]) => [id, latestOf(its) ?? '']),
  );
  const platforms = [...new Set([...rollup.byPlatform, ...looks].map(({ platform }) => platform))].sort();
  return {
    asOf: latestOf([...(rollup.asOf === null ? [] : [{ observedAt: rollup.asOf }]), ...looks]),
    totals: { ...rollup.totals, followerCount: followersOf(window.to) },
    byPlatform: platforms.map((platform) => {
      const { series: _series, ...figures } = rollup.byPlatform.find((one) => one.platform === platform) ?? {
        platform,
        ...totalsOf(),
      };
      return { ...figures, followerCount: followersOf(window.to, platform) };
    }),
    series: rollup.series.map((day) => ({ ...day, followerCount: followersOf(day.day) })),
    accounts,
    previous: null,
  };
};

export const expectedAccount = (
  all: readonly Seen[],
  own: readonly SeenAccount[],
  accountId: string,
  window: Window,
  reading: Reading,
): Compared<AccountRollup> => {
  const posts = expectedRollup(all, (seen) => seen.accountId === accountId, window, reading);
  const days = lastOfDays(
    own.filter((one) => one.accountId === accountId && one.day <= window.to),
    () => '',
  ).toSorted((a, b) => (a.day < b.day ? -1 : 1));
  const inWindow = days.filter(({ day }) => day >= window.from);
  const followersOf = (day: string): Followers['followerCount'] =>
    inWindow.find((one) => one.day === day)?.figures.followerCount ?? null;
  const reported = own.filter(({ figuresDay: day }) => day !== null && day >= window.from && day <= window.to);
  const daily = lastOfDays(
    reported.filter((one) => one.accountId === accountId).map((one) => ({ ...one, day: one.figuresDay ?? '' })),
    () => '',
  );
  const audience: Record<string, number | null> = {};
  for (const { figures } of daily) {
    for (const [name, value] of Object.entries(figures)) {
      if (name === 'followerCount') continue;
      const isKnown = value !== null && (name !== 'accountsEngaged' || window.from === window.to);
      if (isKnown) audience[name] = (audience[name] ?? 0) + value;
      else audience[name] ??= null;
    }
  }
  const counts = inWindow.map(({ figures }) => figures.followerCount ?? null).filter((count) => count !== null);
  return {
    asOf: latestOf([...(posts.asOf === null ? [] : [{ observedAt: posts.asOf }]), ...inWindow]) ?? latestOf(daily),
    totals: { ...posts.totals, followerCount: counts.at(-1) ?? null },
    series: posts.series.map((day) => ({ ...day, followerCount: followersOf(day.day) })),
    audience,
    demographics: days.findLast(({ demographics }) => demographics !== undefined)?.demographics,
    previous: null,
  };
};

const isCounter = (name: string): boolean => counters.some((one) => one === name);

/** By target: each counter as it was last fetched, the other members as last reported. */
export const expectedPosts = (
  all: readonly Seen[],
): ReadonlyMap<string, Pick<PostFiguresRow, 'postId' | 'platform' | 'figures' | 'fetchedAt' | 'day'>> =>
  new Map(
    [...Map.groupBy(all, ({ targetId }) => targetId)].flatMap(([id, seen]) => {
      const last = seen.toSorted((a, b) => (a.observedAt < b.observedAt ? -1 : 1)).at(-1);
      if (last === undefined) return [];
      const known = Object.entries(foldedFigures(seen)).filter(([name]) => isCounter(name));
      const more = Object.entries(last.figures).filter(([name]) => !isCounter(name));
      const platformRemovedAt = seen.findLast(({ removedAt }) => removedAt !== undefined)?.removedAt ?? null;
      const { postId, platform, observedAt: fetchedAt, day } = last;
      const held: PostFigures = Object.fromEntries([...known, ...more]);
      const figures: PostFiguresRow['figures'] = { ...held, platformRemovedAt };
      return [[id, { postId, platform, figures, fetchedAt, day }]];
    }),
  );
