import { talk } from '#domain/platforms/prior-times.ts';
import type { NetworkRules } from '#domain/platforms/rules.ts';
import { insights } from './insights.ts';
import { media } from './media.ts';

/** Threads API. Figures: developers.facebook.com/docs/threads, "Posts", "Overview", changelog of 2025-12-22 (links). */
export const threads: NetworkRules = {
  platform: 'threads',
  name: 'Threads',
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
    note: '500 characters, an emoji counting as its UTF-8 bytes; at most 5 different links.',
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
