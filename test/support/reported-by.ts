/** Spec 2.8, column "Reported by": which networks report each figure. */
import { type Platform, platforms } from '#schemas/common.ts';
import type { AccountFigures, PostFigures } from '#schemas/insights.ts';

export type PostField = keyof PostFigures;

/** "Most platforms" is more than half of them. */
export const most = 'most';

/** `platformRemovedAt` is none of them: the network no longer has the post. `engagementRate` is derived where it is read. */
export const ofPosts: Readonly<Record<PostField, readonly Platform[] | typeof most>> = {
  impressions: most,
  reach: ['facebook', 'instagram', 'linkedin', 'threads'],
  likes: platforms,
  comments: platforms,
  shares: ['instagram', 'facebook', 'linkedin', 'x', 'threads'],
  saves: ['instagram', 'pinterest'],
  clicks: ['facebook', 'linkedin', 'pinterest'],
  permalink: ['facebook', 'instagram', 'threads'],
  reactionsByType: ['facebook'],
  clicksByType: ['facebook'],
  profileActivity: ['instagram'],
  navigation: ['instagram'],
  follows: ['instagram'],
  profileVisits: ['instagram'],
  linkClicks: ['instagram'],
  totalInteractions: ['instagram', 'threads'],
  reposts: ['threads'],
  quotes: ['threads'],
  videoViews: ['facebook', 'instagram'],
  videoCompletions: ['facebook'],
  skipRate: ['instagram'],
  watchTimeMinutes: ['youtube', 'facebook'],
  avgViewDurationSeconds: ['youtube'],
  avgViewPercentage: ['youtube'],
  subscribersGained: ['youtube'],
  subscribersLost: ['youtube'],
  audienceRetention: ['youtube', 'facebook'],
  trafficSources: ['youtube'],
  audienceBreakdown: ['youtube'],
};

export type AccountField = keyof AccountFigures | 'demographics';

export const ofAccounts: Readonly<Record<AccountField, readonly Platform[] | typeof most>> = {
  followerCount: most,
  profileViews: ['instagram'],
  accountsEngaged: ['instagram'],
  profileLinkTaps: ['instagram'],
  videoViews: ['facebook'],
  videoWatchTimeMinutes: ['facebook'],
  contentPlays: ['facebook'],
  demographics: ['facebook', 'instagram', 'threads'],
};
