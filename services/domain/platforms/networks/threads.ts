import { asCount, derived, type FigureSource, items, orNull, sumOf, url } from '../figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '../insights-table.ts';
import { aac, anySize, eightBit420, h264, hevc, upTo, upToMB, within } from '../media-blocks.ts';
import type { MediaUseRules, NetworkMedia } from '../media-rules.ts';
import { followerDemographics, insight } from '../meta-insights.ts';
import { talk } from '../prior-times.ts';
import type { NetworkRules } from '../rules.ts';

/** Threads. Figures: developers.facebook.com/docs/threads, "Overview": image and video specifications. */
const files: MediaUseRules = {
  feed: {
    image: {
      ...anySize,
      formats: ['jpeg', 'png'],
      bytes: upToMB(8),
      aspect: within(0.1, 10),
      width: { min: 320, max: 1440 },
      target: 'social',
    },
    video: {
      ...anySize,
      containers: ['mp4', 'mov'],
      codecs: [h264, hevc],
      pixelFormats: eightBit420,
      fps: { min: 23, max: 60 },
      constantRate: false,
      maxKbps: 100_000,
      bytes: upToMB(1000),
      durationMs: { min: 1, max: 300_000 },
      aspect: within(0.01, 10),
      width: upTo(1920),
      indexFirst: true,
      noEditList: true,
      audio: { ...aac, maxKbps: 128 },
      target: '1080',
    },
    gif: null,
    document: null,
  },
};

const media: NetworkMedia = {
  shapes: [{ use: 'feed', kinds: ['image', 'video'], min: 0, max: 20 }],
  files,
};

/**
 * Threads, API v1.0. Sources: developers.facebook.com/docs/threads, "Insights". `{media, insights}` of a post,
 * `{threads_insights, follower_demographics}` of an account, the latter by breakdown.
 */
const counters = ['likes', 'replies', 'reposts', 'quotes', 'shares'] as const;

/** Sum of a list of counts under one metric of the account; an empty list is a missing figure. */
const summed = (metric: string, list: string): FigureSource<number> =>
  derived(`${metric}.${list}`, (raw) => {
    const one = items(raw, 'threads_insights.data')?.find(({ name }) => name === metric);
    const counts = items(one, list);
    if (counts === null || counts === undefined || counts.length === 0) return undefined;
    return counts.reduce((sum, { value }) => asCount(sum + asCount(value, metric), metric), 0);
  });

const insights: InsightsTable = {
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

/** Threads API. Figures: developers.facebook.com/docs/threads, "Posts", "Overview", changelog of 2025-12-22 (links). */
export const threads: NetworkRules = {
  platform: 'threads',
  name: 'Threads',
  app: {
    addresses: { api: 'https://graph.threads.net', authorize: 'https://threads.net/oauth/authorize' },
    version: 'v1.0',
  },
  text: {
    limits: [
      { unit: 'emoji_bytes', limit: 500 },
      { unit: 'links', limit: 5 },
    ],
    // Posts of 495 letters and three curly apostrophes were refused as longer than 500 (reports of production, 2026-08).
    doubted: {
      ...{ unit: 'utf8_bytes', limit: 500 },
      why: 'Threads documents 500 characters, and was seen to refuse texts of more than 500 bytes',
    },
  },
  media,
  // "Accessibility": `alt_text` of 1,000 characters, with pictures and videos.
  altTexts: [{ kinds: ['image', 'video'], limits: [{ unit: 'code_points', limit: 1000 }] }],
  capabilities: {
    thread: true,
    firstComment: true,
    native: false,
    textOnly: true,
    altText: true,
    cover: false,
    aiLabel: false,
  },
  nativeWindow: null,
  publish: {
    // "Publish": a container is published once; its status says PUBLISHED afterwards.
    handle: 'container',
    absenceIsProof: true,
    readsBack: 'own_posts',
    listsOwnPosts: true,
    settleWindowMs: 600_000,
    permalinks: ['https://www.threads.com/@{username}/post/{code}'],
  },
  // "Rate limits": the network says how much is used.
  postsInWindow: { limit: 250, seconds: 86_400 },
  overrides: {
    quotePostId: { about: 'Id of the post that this one quotes.', type: 'string', headOnly: true },
    replyControl: {
      about: 'Who may reply. Absent: everyone.',
      type: 'enum',
      values: ['everyone', 'accounts_you_follow', 'mentioned_only'],
      headOnly: true,
    },
    firstComment: {
      about:
        'A reply from the same account once the post is out. If it fails, the post stays published and `firstCommentIssue` says why.',
      type: 'comment',
      asPost: true,
      headOnly: true,
    },
  },
  banned: [],
  aiKey: null,
  insights,
  priorTimes: talk,
};
