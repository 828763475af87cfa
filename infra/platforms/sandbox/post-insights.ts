/**
 * Counts of a post in each network's own members and shapes, as `services/domain/platforms/metrics/` reads them. Longer
 * than most: ten networks.
 */
import type { Json } from '#contracts/ports/platform.ts';
import type { InsightsSubject } from '#contracts/ports/platform-insights.ts';
import type { Platform } from '#schemas/common.ts';
import { type Counting, countingOf, cut, dayMs, hourMs } from './curves.ts';
import { insights, type Members, report, split } from './shapes.ts';

export interface Shown {
  readonly platform: Platform;
  readonly post: InsightsSubject;
  readonly permalink: string | null;
  readonly ageMs: number;
}

/** Shares of a video still watched at equal steps of its length. */
const retention = (counting: Counting, steps: number): readonly number[] => {
  const fall = counting.fixed('retention', 0.5, 2.5);
  return Array.from({ length: steps }, (_, step) => Math.round(Math.exp((-fall * step) / steps) * 1000) / 1000);
};

const watching = (counting: Counting) => {
  const views = counting.part('video views', 0.3, 0.7);
  const averageMs = Math.floor(counting.fixed('watched', 4_000, 40_000));
  return { views, averageMs, watchedMs: views * averageMs };
};

/** What is not public is told for 30 days. */
const x = ({ post, ageMs }: Shown, of: Counting): Members => {
  const likes = of.part('likes', 0.01, 0.05);
  const replies = of.part('comments', 0.001, 0.005);
  const reposts = of.part('reposts', 0.001, 0.008);
  const quotes = of.part('quotes', 0.0001, 0.001);
  const bookmarks = of.part('saves', 0.001, 0.006);
  const url_link_clicks = of.part('clicks', 0.002, 0.02);
  const engagements = likes + replies + reposts + quotes + bookmarks + url_link_clicks;
  const non_public_metrics = { url_link_clicks, engagements };
  const data = {
    id: post.externalId,
    public_metrics: {
      impression_count: of.views,
      like_count: likes,
      reply_count: replies,
      retweet_count: reposts,
      quote_count: quotes,
      bookmark_count: bookmarks,
    },
    ...(ageMs > 30 * dayMs ? {} : { non_public_metrics }),
  };
  const analytics = {
    shares: of.part('shares', 0.0005, 0.004),
    user_profile_clicks: of.part('profile', 0.001, 0.01),
    follows: of.part('follows', 0.0001, 0.001),
    unfollows: of.part('unfollows', 0, 0.0001),
  };
  if (!post.hasVideo) return { data, analytics };
  const { views, averageMs, watchedMs } = watching(of);
  const quarters = retention(of, 5).map((part) => String(Math.floor(views * part)));
  return {
    data,
    analytics,
    includes: { media: [{ type: 'video', duration_ms: averageMs * 3, public_metrics: { view_count: views } }] },
    media_analytics: {
      video_views: String(views),
      watch_time_ms: String(watchedMs),
      ...Object.fromEntries(quarters.map((count, quarter) => [`playback_${quarter * 25}_count`, count])),
    },
  };
};

const instagram = ({ post: { externalId, use }, permalink }: Shown, of: Counting): Members => {
  const media = { id: externalId, ...(permalink === null ? {} : { permalink }) };
  const reach = of.part('reach', 0.6, 0.9);
  const replies = of.part('comments', 0.001, 0.006);
  const shares = of.part('shares', 0.001, 0.008);
  const reposts = of.part('reposts', 0.0002, 0.002);
  // "Not enough viewers for the media to show insights."
  if (use === 'story' && reach < 5) return { media, insights: { data: [] } };
  const seen = { views: of.views, reach, shares, reposts };
  const after = { follows: of.part('follows', 0.0002, 0.002), profile_visits: of.part('profile', 0.002, 0.02) };
  const activity = split(
    'profile_activity',
    'action_type',
    cut(of.part('activity', 0.001, 0.004), { BIO_LINK_CLICKED: 6, EMAIL: 2, CALL: 1 }),
  );
  if (use === 'story') {
    const values = {
      ...seen,
      ...after,
      replies,
      total_interactions: replies + shares + reposts,
      link_clicks: of.part('links', 0.002, 0.02),
    };
    const taps = cut(of.part('taps', 0.5, 0.9), { tap_forward: 14, tap_back: 2, tap_exit: 3, swipe_forward: 1 });
    return {
      media,
      insights: {
        data: [
          ...(insights(values).data as Json[]),
          activity,
          split('navigation', 'story_navigation_action_type', taps),
        ],
      },
    };
  }
  const likes = of.part('likes', 0.01, 0.06);
  const saved = of.part('saves', 0.001, 0.01);
  const values = { ...seen, likes, comments: replies, saved };
  const total_interactions = likes + replies + shares + reposts + saved;
  if (use === 'reel') {
    const averageMs = Math.floor(of.fixed('watched', 3_000, 15_000));
    return {
      media,
      insights: insights({
        ...values,
        total_interactions,
        ig_reels_avg_watch_time: averageMs,
        ig_reels_video_view_total_time: of.views * averageMs,
        reels_skip_rate: Math.round(of.fixed('skip', 20, 70) * 10) / 10,
      }),
    };
  }
  return {
    media,
    insights: { data: [...(insights({ ...values, ...after, total_interactions }).data as Json[]), activity] },
  };
};

const facebook = ({ post, permalink }: Shown, of: Counting): Members => {
  if (post.use === 'story') return { post: { id: post.externalId } };
  const likes = of.part('likes', 0.01, 0.05);
  const shares = of.part('shares', 0.0005, 0.006);
  const clicks = of.part('clicks', 0.01, 0.05);
  const told = {
    post: {
      id: post.externalId,
      ...(permalink === null ? {} : { permalink_url: permalink }),
      reactions: { data: [], summary: { total_count: likes } },
      comments: { data: [], summary: { total_count: of.part('comments', 0.001, 0.008) } },
      ...(shares === 0 ? {} : { shares: { count: shares } }),
    },
    insights: insights({
      post_media_view: of.views,
      post_total_media_view_unique: of.part('reach', 0.6, 0.9),
      post_clicks: clicks,
      post_clicks_by_type: cut(clicks, { 'other clicks': 3, 'link clicks': 5, 'photo view': 2 }),
      post_reactions_by_type_total: cut(likes, { like: 80, love: 12, haha: 3, wow: 3, sorry: 1, anger: 1 }),
    }),
  };
  if (!post.hasVideo) return told;
  const { views, averageMs, watchedMs } = watching(of);
  const graph = Object.fromEntries(retention(of, 40).map((ratio, place) => [String(place), ratio]));
  const watched = { post_video_avg_time_watched: averageMs, post_video_followers: of.part('follows', 0.0001, 0.001) };
  return {
    ...told,
    video_insights: insights(
      post.use === 'reel'
        ? {
            ...watched,
            fb_reels_total_plays: views,
            total_video_view_total_time: watchedMs,
            post_video_retention_graph: graph,
          }
        : {
            ...watched,
            total_video_views: views,
            total_video_complete_views: Math.floor(views * of.fixed('completed', 0.05, 0.3)),
            total_video_view_total_time: watchedMs,
            total_video_retention_graph: graph,
          },
    ),
  };
};

const tiktok = ({ post, permalink }: Shown, of: Counting): Members => ({
  id: post.externalId,
  ...(permalink === null ? {} : { share_url: permalink }),
  view_count: of.views,
  like_count: of.part('likes', 0.02, 0.1),
  comment_count: of.part('comments', 0.001, 0.01),
  share_count: of.part('shares', 0.001, 0.01),
});

/** Its reports are of two to three days ago, and have no rows before. */
const youtube = ({ post, ageMs, platform }: Shown, of: Counting): Members => {
  const statistics = {
    viewCount: String(of.views),
    likeCount: String(of.part('likes', 0.01, 0.06)),
    commentCount: String(of.part('comments', 0.0005, 0.004)),
  };
  const video = { kind: 'youtube#videoStats', id: post.externalId, statistics };
  const lagMs = 48 * hourMs + of.fixed('lag', 0, 24 * hourMs);
  const then = countingOf(platform, post.externalId, ageMs - lagMs);
  const columns = [
    'views',
    'likes',
    'comments',
    'shares',
    'estimatedMinutesWatched',
    'averageViewDuration',
    'averageViewPercentage',
    'subscribersGained',
    'subscribersLost',
  ];
  if (ageMs < lagMs || then.views === 0) return { video, totals: { columnHeaders: columns.map((name) => ({ name })) } };
  const seconds = Math.floor(then.fixed('watched', 40, 300));
  const percent = Math.round(then.fixed('percent', 20, 70) * 100) / 100;
  const sources = cut(then.views, { YT_SEARCH: 3, RELATED_VIDEO: 4, SUBSCRIBER: 2, EXT_URL: 1 });
  return {
    video,
    totals: report(columns, [
      [
        then.views,
        then.part('likes', 0.01, 0.06),
        then.part('comments', 0.0005, 0.004),
        then.part('shares', 0.0005, 0.005),
        Math.floor((then.views * seconds) / 60),
        seconds,
        percent,
        then.part('gained', 0.0005, 0.004),
        then.part('lost', 0, 0.0004),
      ],
    ]),
    retention: report(
      ['elapsedVideoTimeRatio', 'audienceWatchRatio'],
      retention(then, 100).map((ratio, place) => [(place + 1) / 100, ratio]),
    ),
    traffic: report(['insightTrafficSourceType', 'views'], Object.entries(sources)),
    viewers: report(
      ['ageGroup', 'gender', 'viewerPercentage'],
      [
        ['age18-24', 'female', 22.5],
        ['age18-24', 'male', 17.5],
        ['age25-34', 'female', 31],
        ['age25-34', 'male', 29],
      ],
    ),
    countries: report(['country', 'views'], Object.entries(cut(then.views, { DE: 7, AT: 2, CH: 1 }))),
    devices: report(['deviceType', 'views'], Object.entries(cut(then.views, { MOBILE: 7, DESKTOP: 2, TV: 1 }))),
  };
};

const linkedin = ({ post }: Shown, of: Counting): Members => {
  const likes = of.part('likes', 0.01, 0.05);
  const statistics = {
    impressionCount: of.views,
    uniqueImpressionsCount: of.part('reach', 0.55, 0.85),
    clickCount: of.part('clicks', 0.01, 0.04),
    likeCount: likes,
    commentCount: of.part('comments', 0.001, 0.006),
    shareCount: of.part('shares', 0.0005, 0.004),
  };
  const kinds = cut(likes, { LIKE: 80, EMPATHY: 10, PRAISE: 7, ENTERTAINMENT: 3 });
  const { views, watchedMs } = watching(of);
  return {
    // A post without any activity is left out of the list.
    organizationalEntityShareStatistics: {
      elements: of.views === 0 ? [] : [{ share: post.externalId, totalShareStatistics: statistics }],
    },
    socialMetadata: {
      reactionSummaries: Object.fromEntries(
        Object.entries(kinds).map(([reactionType, count]) => [reactionType, { reactionType, count }]),
      ),
    },
    ...(post.hasVideo
      ? {
          videoAnalytics: {
            VIDEO_VIEW: { elements: [{ value: views }] },
            TIME_WATCHED: { elements: [{ value: watchedMs }] },
          },
        }
      : {}),
  };
};

const threads = ({ post, permalink }: Shown, of: Counting): Members => ({
  media: { id: post.externalId, ...(permalink === null ? {} : { permalink }) },
  insights: insights({
    views: of.views,
    likes: of.part('likes', 0.01, 0.05),
    replies: of.part('comments', 0.001, 0.01),
    reposts: of.part('reposts', 0.001, 0.006),
    quotes: of.part('quotes', 0.0001, 0.002),
    shares: of.part('shares', 0.0005, 0.004),
  }),
});

const pinterest = ({ post }: Shown, of: Counting): Members => {
  const { views, averageMs, watchedMs } = watching(of);
  const summary_metrics = {
    IMPRESSION: of.views,
    PIN_CLICK: of.part('clicks', 0.01, 0.05),
    OUTBOUND_CLICK: of.part('links', 0.002, 0.01),
    SAVE: of.part('saves', 0.003, 0.02),
    USER_FOLLOW: of.part('follows', 0.0001, 0.001),
    PROFILE_VISIT: of.part('profile', 0.001, 0.006),
    ...(post.hasVideo
      ? {
          VIDEO_MRC_VIEW: views,
          QUARTILE_95_PERCENT_VIEW: Math.floor(views * of.fixed('completed', 0.05, 0.3)),
          VIDEO_V50_WATCH_TIME: watchedMs,
          VIDEO_AVG_WATCH_TIME: averageMs,
        }
      : {}),
  };
  const lifetime_metrics = {
    TOTAL_REACTIONS: of.part('likes', 0.002, 0.02),
    TOTAL_COMMENTS: of.part('comments', 0.0002, 0.002),
  };
  return { analytics: { all: { summary_metrics, lifetime_metrics } } };
};

const bluesky = ({ post }: Shown, of: Counting): Members => ({
  uri: post.externalId,
  likeCount: of.part('likes', 0.01, 0.06),
  replyCount: of.part('comments', 0.001, 0.01),
  repostCount: of.part('reposts', 0.002, 0.01),
  quoteCount: of.part('quotes', 0.0002, 0.002),
  bookmarkCount: of.part('saves', 0.0005, 0.004),
});

const telegram = (_shown: Shown, of: Counting): Members => {
  const likes = of.part('likes', 0.01, 0.06);
  const emoji = cut(likes, { '👍': 6, '❤': 3, '🔥': 1 });
  const reactions = Object.entries(emoji).map(([one, total_count]) => ({
    type: { type: 'emoji', emoji: one },
    total_count,
  }));
  return {
    // No update is sent before somebody reacts.
    ...(likes === 0 ? {} : { message_reaction_count: { reactions } }),
    discussion: { messages: of.part('comments', 0.0005, 0.005) },
  };
};

const posts: { readonly [P in Platform]: (shown: Shown, of: Counting) => Members } = {
  x,
  instagram,
  tiktok,
  youtube,
  facebook,
  linkedin,
  threads,
  pinterest,
  bluesky,
  telegram,
};

/** Nobody sees a story after a day. */
export function postAnswer(shown: Shown): Members {
  const { platform, post } = shown;
  const ageMs = post.use === 'story' ? Math.min(shown.ageMs, dayMs) : shown.ageMs;
  return posts[platform](shown, countingOf(platform, post.externalId, ageMs));
}
