/**
 * Facebook Pages. Sources: developers.facebook.com, "Page Insights", "Video Insights" (Graph API v25), after the
 * retirements of 2025-11-15 and 2026-06-15: `post_media_view` took the place of `post_impressions`.
 *
 * Of a post `{post, insights, video_insights}`: the node with its summaries, and all calls joined into one `data` each. Of
 * an account `{page, insights}` for one day.
 */
import {
  asAmount,
  type Counted,
  count,
  derived,
  first,
  minutesOf,
  ofVideo,
  orZero,
  renamed,
  secondsOf,
  url,
} from '#domain/platforms/figure-source.ts';
import {
  type InsightsTable,
  type PostTable,
  unreportedAccount,
  unreportedPost,
} from '#domain/platforms/insights-table.ts';
import { insight, insightCounts, insightObject } from '#domain/platforms/meta-insights.ts';

const ofVideoInsights = (metric: string) => insight(metric, 'video_insights');
const watched = first(insight('post_video_view_time'), ofVideoInsights('total_video_view_total_time'));

/** Members `0` to `39`, each a fortieth of the video. */
const retention = (metric: string) =>
  derived(metric, (raw) => {
    const reported = insightObject(metric, 'video_insights').read(raw);
    if (reported === null || reported === undefined) return reported;
    const parts = Object.keys(reported).filter((name) => /^([0-9]|[1-3]\d)$/.test(name));
    return parts
      .map((name) => ({ position: Number(name) / 40, ratio: asAmount(reported[name], `${metric}.${name}`) }))
      .sort((one, other) => one.position - other.position);
  });

const all: PostTable = {
  ...unreportedPost,
  impressions: insight('post_media_view'),
  // Facebook refuses it to very small Pages.
  reach: insight('post_total_media_view_unique'),
  likes: count('post.reactions.summary.total_count'),
  comments: count('post.comments.summary.total_count'),
  shares: orZero(count('post.shares.count'), 'post'),
  clicks: insight('post_clicks'),
  clicksByType: insightCounts('post_clicks_by_type'),
  permalink: url('post.permalink_url'),
  reactionsByType: renamed(insightObject('post_reactions_by_type_total'), {
    like: 'like',
    love: 'love',
    wow: 'wow',
    haha: 'haha',
    sad: 'sorry',
    angry: 'anger',
  }),
  follows: ofVideo(ofVideoInsights('post_video_followers')),
  watchTimeMinutes: ofVideo(minutesOf(watched)),
  avgViewDurationSeconds: ofVideo(secondsOf(ofVideoInsights('post_video_avg_time_watched'))),
};

export const insights: InsightsTable = {
  post: {
    feed: {
      ...all,
      videoViews: ofVideo(first(ofVideoInsights('total_video_views'), insight('post_video_views'))),
      videoCompletions: ofVideo(ofVideoInsights('total_video_complete_views')),
      audienceRetention: ofVideo(retention('total_video_retention_graph')),
    },
    reel: {
      ...all,
      videoViews: ofVideo(first(ofVideoInsights('fb_reels_total_plays'), ofVideoInsights('blue_reels_play_count'))),
      audienceRetention: ofVideo(retention('post_video_retention_graph')),
    },
    // Facebook does not document its story metrics, and they are often 0 for stories that people have seen.
    story: unreportedPost,
  },
  account: {
    ...unreportedAccount,
    followerCount: count('page.followers_count'),
    profileViews: insight('page_views_total'),
    profileLinkTaps: insight('page_total_actions'),
    // Both were retired on 2026-06-15 without a successor; they are read where Facebook still answers them.
    videoViews: insight('page_video_views'),
    videoWatchTimeMinutes: minutesOf(insight('page_video_view_time')),
    contentPlays: insight('page_media_view'),
  },
  // Facebook dropped age and gender in 2024.
  demographics: derived('page_follows_country, page_follows_city', demographicsOf),
};

function demographicsOf(raw: unknown): Record<string, Counted> | undefined {
  const found = (['country', 'city'] as const).flatMap((dimension) => {
    const reported = insightCounts(`page_follows_${dimension}`).read(raw);
    return reported === null || reported === undefined ? [] : [[dimension, reported] as const];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}
