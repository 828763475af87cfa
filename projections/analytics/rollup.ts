import type { Platform } from '#schemas/common.ts';
import type { AccountFigures, CounterName, Demographics, PostFigures } from '#schemas/insights.ts';

/** The results of the analytics queries. */

/** Dates `YYYY-MM-DD`, both inclusive. */
export interface Window {
  readonly from: string;
  readonly to: string;
}

export interface Filters {
  readonly platforms?: readonly Platform[];
  readonly clientId?: string;
  readonly socialAccountId?: string;
  /** Of the read models alone: only posts of these clients. */
  readonly postClientIds?: readonly string[];
}

/** Gains over some days, added up over posts. Absent: never fetched; null: no network reported the figure. */
export type Totals = Readonly<Partial<Record<CounterName, number | null>>> & { readonly engagementRate: number | null };

/** `provisional`: the next observation of a post may still change the day. */
export type OfDay = Totals & { readonly day: string; readonly provisional: boolean };
export type OfPlatform = Totals & {
  readonly platform: Platform;
  /** Present where the caller asked for the network's days. */
  readonly series?: readonly OfDay[];
};

export interface Rollup {
  /** ISO 8601: the freshest snapshot in the window; null: there is none. */
  readonly asOf: string | null;
  readonly totals: Totals;
  readonly byPlatform: readonly OfPlatform[];
  /** One entry for each day of the window; a day without an observation has no counter. */
  readonly series: readonly OfDay[];
}

/** Options of a query beside the sums of its window. */
export interface Beside {
  /** Days before the window, reported in the same way. They need not adjoin it. */
  readonly previous?: Window | null;
  /** The days of each network. */
  readonly networks?: boolean;
  /**
   * By which a day is provisional: milliseconds since the epoch, of the clock that dates the figures. A sandbox's may be ahead
   * of ours. Default: our time.
   */
  readonly now?: number;
}

/** From one statement. `previous` is null where the caller asked for none. */
export type Compared<R> = R & { readonly previous: R | null };

/** Followers of accounts themselves, not figures of their posts. */
export interface Followers {
  /** The last snapshot in the window, or of the day; of several accounts the sum of the last of each. */
  readonly followerCount: number | null;
}

type Followed<Of extends { readonly series?: readonly OfDay[] }> = Omit<Of, 'series'> &
  Followers & { readonly series?: readonly (OfDay & Followers)[] };

/** Of a workspace or a client. */
export interface Board {
  readonly asOf: string | null;
  readonly totals: Totals & Followers;
  readonly byPlatform: readonly Followed<OfPlatform>[];
  readonly series: readonly (OfDay & Followers)[];
  /** By account: its newest observation in the window. ISO 8601. */
  readonly accounts: ReadonlyMap<string, string>;
}

export interface AccountRollup {
  readonly asOf: string | null;
  readonly totals: Totals & Followers;
  readonly series: readonly (OfDay & Followers)[];
  /** Sums of the network's daily figures. */
  readonly audience: Omit<AccountFigures, 'followerCount'>;
  readonly demographics: Demographics | null | undefined;
}

/** A post, and when the first and the last of its targets were published. ISO 8601. */
export interface WentOut {
  readonly id: string;
  readonly first: string;
  readonly last: string;
}

export interface PostFiguresRow {
  readonly postId: string;
  readonly targetId: string;
  readonly platform: Platform;
  /** Lifetime, of the newest observation not after the end of the window. */
  readonly figures: PostFigures & { readonly platformRemovedAt?: string | null };
  readonly engagementRate: number | null;
  /** ISO 8601. */
  readonly fetchedAt: string;
  /** `YYYY-MM-DD`: the day of `fetchedAt` in the workspace's zone as it was then. */
  readonly day: string;
}

export type SortMetric = CounterName | 'engagementRate';

/** Which posts are ranked, and by which observations. */
export interface RankedPosts {
  /** ISO 8601: one of their targets was published then or later. */
  readonly since: string;
  /** The newest observation not after this day. */
  readonly to: string;
  /** ISO 8601: nor after this instant. */
  readonly seenBy: string;
  readonly filters: Filters;
  /** Only these posts. */
  readonly posts?: readonly string[];
}

/** An exact figure: neither rounded nor cut. */
export interface RankedAfter {
  readonly value: string;
  readonly id: string;
}
export interface Ranked extends RankedAfter {
  /** ISO 8601: when the first counted target was published. */
  readonly publishedAt: string;
}

/** Lifetime figures of the targets of a post that were published in a window. */
export interface TopPost {
  readonly postId: string;
  /** ISO 8601: when the first of those targets was published. */
  readonly publishedAt: string;
  readonly platforms: readonly Platform[];
  readonly impressions: number | null;
  readonly interactions: number | null;
  readonly engagementRate: number | null;
}

/** Reads of one workspace; ids of other workspaces find nothing. */
export interface AnalyticsReader {
  overview(workspaceId: string, window: Window, filters: Filters, beside?: Beside): Promise<Compared<Board>>;
  client(
    workspaceId: string,
    clientId: string,
    window: Window,
    filters: Filters,
    beside?: Beside,
  ): Promise<Compared<Board>>;
  account(
    workspaceId: string,
    accountId: string,
    window: Window,
    beside?: Pick<Beside, 'previous' | 'now'>,
  ): Promise<Compared<AccountRollup>>;
  /** By account: its newest observation on these days. ISO 8601. */
  looks(workspaceId: string, window: Window, filters: Filters): Promise<ReadonlyMap<string, string>>;
  /**
   * In no order; targets without an observation are left out.
   * @param to the newest observation not after this day
   * @param seenBy ISO 8601: nor after this instant. Default: no such bound
   */
  posts(
    workspaceId: string,
    posts: readonly WentOut[],
    to: string,
    seenBy?: string,
  ): Promise<readonly PostFiguresRow[]>;
  /** The highest figure first, then the greater id; posts without the figure are left out. */
  ranked(
    workspaceId: string,
    request: RankedPosts,
    sort: SortMetric,
    page: { readonly after: RankedAfter | null; readonly limit: number },
  ): Promise<readonly Ranked[]>;
  /** Posts of the window with the most interactions; equal ones by impressions. */
  top(
    workspaceId: string,
    window: Window,
    timezone: string,
    filters: Filters,
    limit: number,
  ): Promise<readonly TopPost[]>;
}
