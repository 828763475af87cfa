/**
 * TikTok, Content Posting and Display API v2. Source: developers.tiktok.com, "Query Videos": four counters of public
 * posts; "Get User Info". `raw` is the video, or the user, as it stands in `data`.
 */
import { count, url } from '#domain/platforms/figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '#domain/platforms/insights-table.ts';

export const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    // A view is no impression, and TikTok reports no impressions.
    videoViews: count('view_count'),
    likes: count('like_count'),
    comments: count('comment_count'),
    shares: count('share_count'),
    permalink: url('share_url'),
  }),
  account: { ...unreportedAccount, followerCount: count('follower_count') },
  demographics: null,
};
