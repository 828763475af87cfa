/**
 * Threads, API v1.0. Sources: developers.facebook.com/docs/threads, "Insights". `{media, insights}` of a post,
 * `{threads_insights, follower_demographics}` of an account, the latter by breakdown.
 */

import { asCount, derived, type FigureSource, items, orNull, sumOf, url } from '#domain/platforms/figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '#domain/platforms/insights-table.ts';
import { followerDemographics, insight } from '#domain/platforms/meta-insights.ts';

const counters = ['likes', 'replies', 'reposts', 'quotes', 'shares'] as const;

/** Sum of a list of counts under one metric of the account; an empty list is a missing figure. */
const summed = (metric: string, list: string): FigureSource<number> =>
  derived(`${metric}.${list}`, (raw) => {
    const one = items(raw, 'threads_insights.data')?.find(({ name }) => name === metric);
    const counts = items(one, list);
    if (counts === null || counts === undefined || counts.length === 0) return undefined;
    return counts.reduce((sum, { value }) => asCount(sum + asCount(value, metric), metric), 0);
  });

export const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    impressions: insight('views'),
    // This version of the API has no such metric; it is read where a later one answers it.
    reach: orNull(insight('reach')),
    likes: insight('likes'),
    comments: insight('replies'),
    shares: insight('shares'),
    totalInteractions: sumOf(...counters.map((name) => insight(name))),
    reposts: insight('reposts'),
    quotes: insight('quotes'),
    permalink: url('media.permalink'),
  }),
  account: {
    ...unreportedAccount,
    // Threads reports it for accounts with a linked Instagram account.
    followerCount: orNull(insight('followers_count', 'threads_insights')),
    profileViews: summed('views', 'values'),
    profileLinkTaps: summed('clicks', 'link_total_values'),
  },
  demographics: followerDemographics,
};
