import type { AccountFigures, Demographics, PostFigures } from '#schemas/insights.ts';
import type { FigureSource } from './figure-source.ts';

type Field<T> = FigureSource<NonNullable<T>> | null;

/** Where a network reports each figure of a post; null: it does not report it. */
export type PostTable = { readonly [F in keyof PostFigures]-?: Field<PostFigures[F]> };
export type AccountTable = { readonly [F in keyof AccountFigures]-?: Field<AccountFigures[F]> };

export interface InsightsTable {
  /** `feed` holds for carousels too, and for videos on networks without reels. */
  readonly post: { readonly feed: PostTable; readonly reel: PostTable; readonly story: PostTable };
  readonly account: AccountTable;
  readonly demographics: FigureSource<Demographics> | null;
}

/** No figure at all: a network's table adds what it reports. */
export const unreportedPost: PostTable = {
  impressions: null,
  reach: null,
  likes: null,
  comments: null,
  shares: null,
  saves: null,
  clicks: null,
  permalink: null,
  reactionsByType: null,
  clicksByType: null,
  profileActivity: null,
  navigation: null,
  follows: null,
  profileVisits: null,
  linkClicks: null,
  totalInteractions: null,
  reposts: null,
  quotes: null,
  videoViews: null,
  videoCompletions: null,
  skipRate: null,
  watchTimeMinutes: null,
  avgViewDurationSeconds: null,
  avgViewPercentage: null,
  subscribersGained: null,
  subscribersLost: null,
  audienceRetention: null,
  trafficSources: null,
  audienceBreakdown: null,
};

export const unreportedAccount: AccountTable = {
  followerCount: null,
  profileViews: null,
  accountsEngaged: null,
  profileLinkTaps: null,
  videoViews: null,
  videoWatchTimeMinutes: null,
  contentPlays: null,
};

/** The same figures for the feed, reels and stories. */
export const anyUse = (post: PostTable): InsightsTable['post'] => ({ feed: post, reel: post, story: post });
