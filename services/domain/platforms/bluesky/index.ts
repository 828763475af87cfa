import { talk } from '#domain/platforms/prior-times.ts';
import type { NetworkRules } from '#domain/platforms/rules.ts';
import { insights } from './insights.ts';
import { media } from './media.ts';

/** Bluesky, AT Protocol. Figures: docs.bsky.app, lexicon app.bsky.feed.post; atproto.com, "Record keys". */
export const bluesky: NetworkRules = {
  platform: 'bluesky',
  name: 'Bluesky',
  text: {
    limits: [
      { unit: 'graphemes', limit: 300 },
      { unit: 'utf8_bytes', limit: 3000 },
    ],
    note: '300 graphemes and 3,000 UTF-8 bytes; links count in full.',
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
