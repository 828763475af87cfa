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
} from '../figure-source.ts';
import { type InsightsTable, type PostTable, unreportedAccount, unreportedPost } from '../insights-table.ts';
import {
  aac,
  about,
  anySize,
  av1,
  eightBit420,
  h264,
  hevc,
  nineBySixteen,
  seconds,
  upToMB,
  vp9,
} from '../media-blocks.ts';
import type { ImageRules, MediaUseRules, NetworkMedia, VideoRules } from '../media-rules.ts';
import { insight, insightCounts, insightObject } from '../meta-insights.ts';
import { leisure } from '../prior-times.ts';
import type { NetworkRules } from '../rules.ts';

/** Facebook Pages. Figures: developers.facebook.com, "Page Photos", "Page Videos", "Page Video Reels", "Page Stories". */

// 10 MB are documented, but error 1366046 speaks of 4 MB of JPEG or PNG.
const image: ImageRules = { ...anySize, formats: ['jpeg', 'png'], bytes: upToMB(4), target: 'large' };

const feedVideo: VideoRules = {
  ...anySize,
  containers: ['mp4', 'mov'],
  codecs: [h264],
  pixelFormats: eightBit420,
  fps: { min: 1, max: 60 },
  constantRate: false,
  maxKbps: null,
  // Both are commonly cited and unconfirmed.
  bytes: upToMB(10_000),
  durationMs: { min: 1, max: 4 * 3_600_000 },
  aspect: about(9 / 16, 16 / 9),
  indexFirst: false,
  noEditList: false,
  audio: aac,
  target: '1080',
};

const reel: VideoRules = {
  ...feedVideo,
  containers: ['mp4'],
  codecs: [h264, hevc, vp9, av1],
  fps: { min: 24, max: 60 },
  constantRate: true,
  // Undocumented; the older limit of the page's own composer.
  bytes: upToMB(1000),
  durationMs: seconds(3, 90),
  aspect: nineBySixteen,
  long: { min: 960, max: 1920 },
  short: { min: 540, max: 1080 },
};

/** A still gif would be taken, a moving one would stand still: it is published as a video. */
const none = { gif: null, document: null };

const files: MediaUseRules = {
  feed: { ...none, image, video: feedVideo },
  reel: { ...none, image: null, video: reel },
  story: { ...none, image, video: { ...reel, durationMs: seconds(3, 60) } },
  cover: { ...none, image: { ...image, target: 'thumbnail' }, video: null },
};

const media: NetworkMedia = {
  // Photos and a video do not go together; ten photos are practice, not documentation.
  shapes: [
    { use: 'feed', kinds: ['image'], min: 0, max: 10 },
    { use: 'feed', kinds: ['video'], min: 0, max: 1 },
    { use: 'reel', kinds: ['video'], min: 1, max: 1 },
    { use: 'story', kinds: ['image', 'video'], min: 1, max: 1 },
  ],
  files,
  useOf: (asked) => asked ?? 'feed',
  // "Video thumbnails": of a reel by `POST /{video}/thumbnails`; of a video in the feed with the video.
  coverAfter: ['reel'],
};

/**
 * Facebook Pages. Sources: developers.facebook.com, "Page Insights", "Video Insights" (Graph API v25), after the
 * retirements of 2025-11-15 and 2026-06-15: `post_media_view` took the place of `post_impressions`.
 *
 * Of a post `{post, insights, video_insights}`: the node with its summaries, and all calls joined into one `data` each. Of
 * an account `{page, insights}` for one day.
 */
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

const insights: InsightsTable = {
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

/** Facebook Pages, Graph API v27. Figures: developers.facebook.com, "Pages API: Posts", "Page Feed", "Page Video Reels". */
export const facebook: NetworkRules = {
  platform: 'facebook',
  name: 'Facebook',
  app: {
    addresses: {
      ...{ api: 'https://graph.facebook.com', authorize: 'https://www.facebook.com' },
      uploads: 'https://rupload.facebook.com',
    },
    version: 'v27.0',
    // Those of Instagram can be asked for in the same consent, of an app that has them.
    scopes: [
      ...['pages_show_list', 'pages_manage_posts', 'pages_read_engagement', 'pages_manage_engagement'],
      ...['pages_read_user_content', 'read_insights', 'business_management'],
    ],
  },
  text: {
    limits: [{ unit: 'code_points', limit: 63_206 }],
  },
  media,
  // "Page Photos": `alt_text_custom`, of no named length; a video has none.
  altTexts: [{ kinds: ['image', 'gif'], uses: ['feed', 'carousel'], limits: [] }],
  capabilities: {
    thread: false,
    firstComment: true,
    native: true,
    textOnly: true,
    altText: true,
    cover: true,
    aiLabel: false,
  },
  // "Page Feed": at least 10 minutes ahead; the far end is the shortest of feed (75 days), video (6 months), reel (29 days).
  // A story has no scheduled_publish_time.
  nativeWindow: { minMs: 600_000, maxMs: 29 * 86_400_000, refuses: { contentType: ['story'] } },
  publish: {
    // Unpublished photos and video ids are handles, but /feed itself takes none: the same call makes a second post.
    handle: 'container',
    absenceIsProof: false,
    readsBack: 'own_posts',
    listsOwnPosts: true,
    settleWindowMs: 900_000,
    permalinks: ['https://www.facebook.com/{id}'],
  },
  overrides: {
    contentType: { about: 'The form of the post.', type: 'enum', values: ['feed', 'reel', 'story'], default: 'feed' },
    firstComment: {
      about:
        'A comment on the published post, at most 8,000 characters. If it fails, the post stays published and `firstCommentIssue` says why. Without the permission to comment on its connection, the network refuses it.',
      type: 'comment',
      asPost: false,
      // Practice: no page of the API names it.
      max: 8000,
    },
  },
  banned: [],
  aiKey: null,
  insights,
  priorTimes: leisure,
};
