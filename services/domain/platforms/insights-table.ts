import type { AccountFigures, Demographics, PostFigures } from '#schemas/insights.ts';
import type { Source } from './figure-source.ts';

type Field<T> = Source<NonNullable<T>> | null;

/** Every figure of a post: where a network tells it; null: it does not. */
export type PostTable = { readonly [F in keyof PostFigures]-?: Field<PostFigures[F]> };
export type AccountTable = { readonly [F in keyof AccountFigures]-?: Field<AccountFigures[F]> };

export interface InsightsTable {
  /** `feed`: carousels too, and videos on networks that have no reels. */
  readonly post: { readonly feed: PostTable; readonly reel: PostTable; readonly story: PostTable };
  readonly account: AccountTable;
  readonly demographics: Source<Demographics> | null;
}

/** Nothing is told; a network’s table says what is. */
export const untold: PostTable = {
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

export const untoldAccount: AccountTable = {
  followerCount: null,
  profileViews: null,
  accountsEngaged: null,
  profileLinkTaps: null,
  videoViews: null,
  videoWatchTimeMinutes: null,
  contentPlays: null,
};

/** One table for whatever way a post went out. */
export const always = (post: PostTable): InsightsTable['post'] => ({ feed: post, reel: post, story: post });
