import { count, orNull } from '../figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '../insights-table.ts';
import { aac, anySize, eightBit420, h264, upToMB } from '../media-blocks.ts';
import type { MediaUseRules, NetworkMedia } from '../media-rules.ts';
import { talk } from '../prior-times.ts';
import type { NetworkRules } from '../rules.ts';

/** Bluesky. Figures: lexicons app.bsky.embed.images and app.bsky.embed.video; docs.bsky.app, "Video". */
const files: MediaUseRules = {
  feed: {
    // 2 MB since 2026; a personal data server with older lexicons takes 1 MB.
    image: { ...anySize, formats: ['jpeg', 'png', 'webp'], bytes: upToMB(1), target: 'social' },
    video: {
      ...anySize,
      containers: ['mp4'],
      codecs: [h264],
      pixelFormats: eightBit420,
      fps: { min: 1, max: 60 },
      constantRate: false,
      maxKbps: null,
      bytes: upToMB(300),
      durationMs: { min: 1, max: 600_000 },
      indexFirst: false,
      noEditList: false,
      audio: aac,
      target: '1080',
    },
    // An image would stand still; a video is shown as a gif is (`presentation: "gif"`).
    gif: null,
    document: null,
  },
};

const media: NetworkMedia = {
  shapes: [
    { use: 'feed', kinds: ['image'], min: 0, max: 10 },
    { use: 'feed', kinds: ['video'], min: 0, max: 1 },
  ],
  files,
};

/**
 * Bluesky. Source: docs.bsky.app, `app.bsky.feed.getPosts` and `app.bsky.actor.getProfile`. `raw` is the post view, or
 * the profile.
 */
const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    likes: count('likeCount'),
    comments: count('replyCount'),
    reposts: count('repostCount'),
    quotes: count('quoteCount'),
    // Not every app view has it.
    saves: orNull(count('bookmarkCount')),
  }),
  account: { ...unreportedAccount, followerCount: count('followersCount') },
  demographics: null,
};

/** Bluesky, AT Protocol. Figures: docs.bsky.app, lexicon app.bsky.feed.post; atproto.com, "Record keys". */
export const bluesky: NetworkRules = {
  platform: 'bluesky',
  name: 'Bluesky',
  text: {
    // Links count in full.
    limits: [
      { unit: 'graphemes', limit: 300 },
      { unit: 'utf8_bytes', limit: 3000 },
    ],
  },
  media,
  // The lexicons name no limit; the official app stops at 2,000.
  altTexts: [{ kinds: ['image', 'video', 'gif'], limits: [{ unit: 'graphemes', limit: 2000 }] }],
  capabilities: {
    thread: false,
    firstComment: true,
    native: false,
    textOnly: true,
    altText: true,
    cover: false,
    aiLabel: false,
  },
  nativeWindow: null,
  publish: {
    // The record key is chosen before the write; a record written twice under one key is one post.
    handle: 'record_key',
    absenceIsProof: true,
    readsBack: 'own_posts',
    listsOwnPosts: true,
    settleWindowMs: 600_000,
    permalinks: ['https://bsky.app/profile/{account}/post/{code}'],
  },
  overrides: {
    // The format `uri` of the lexicons: 8 KiB.
    link: { about: 'Address of the page that a preview card shows.', type: 'url', max: 8192 },
    labelSexual: { about: 'Labels the media as sexually suggestive.', type: 'boolean', default: false },
    labelNudity: { about: 'Labels the media as nudity.', type: 'boolean', default: false },
    labelPorn: { about: 'Labels the media as pornography.', type: 'boolean', default: false },
    labelGraphicMedia: { about: 'Labels the media as graphic.', type: 'boolean', default: false },
    firstComment: {
      about:
        'A reply from the same account once the post is out. If it fails, the post stays published and `firstCommentIssue` says why.',
      type: 'comment',
      asPost: true,
    },
  },
  banned: [],
  aiKey: null,
  insights,
  priorTimes: talk,
};
