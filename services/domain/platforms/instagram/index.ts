import { leisure } from '#domain/platforms/prior-times.ts';
import type { NetworkRules } from '#domain/platforms/rules.ts';
import type { MediaUse } from '#schemas/media.ts';
import { insights } from './insights.ts';
import { media } from './media.ts';

/** "IG User Media": a story has neither caption, place nor collaborators. */
const notStory: readonly MediaUse[] = ['feed', 'carousel', 'reel'];

/** Instagram, Graph API v25. Figures: developers.facebook.com, "Instagram Platform: Content publishing", "IG User Media". */
export const instagram: NetworkRules = {
  platform: 'instagram',
  name: 'Instagram',
  text: {
    limits: [
      { unit: 'code_points', limit: 2200 },
      { unit: 'hashtags', limit: 30 },
      { unit: 'mentions', limit: 20 },
    ],
    note: 'Caption of 2,200 characters with at most 30 hashtags and 20 mentions.',
  },
  media,
  // "IG User Media": `alt_text` of 1,000 characters, with pictures of a feed post or carousel.
  altTexts: [{ kinds: ['image'], uses: ['feed', 'carousel'], limits: [{ unit: 'code_points', limit: 1000 }] }],
  capabilities: {
    thread: false,
    firstComment: true,
    native: false,
    textOnly: false,
    altText: true,
    cover: true,
    aiLabel: true,
  },
  nativeWindow: null,
  publish: {
    // "IG Container": published at most once, its status_code says so afterwards.
    handle: 'container',
    absenceIsProof: true,
    readsBack: 'own_posts',
    listsOwnPosts: true,
    settleWindowMs: 600_000,
    permalinks: ['https://www.instagram.com/p/{code}/'],
  },
  overrides: {
    contentType: {
      about: 'The form of the post. Absent: feed; a single video is published as a reel.',
      type: 'enum',
      values: ['feed', 'reel', 'story'],
    },
    firstComment: {
      about:
        'A comment on the published post, at most 2,200 characters with 30 hashtags. If it fails, the post stays published and `firstCommentIssue` says why. Without the permission to comment on its connection, the network refuses it.',
      type: 'comment',
      asPost: false,
      // Practice: no page of the API says how long a comment may be; the app takes what it takes of a caption.
      ...{ max: 2200, maxHashtags: 30 },
    },
    userTags: {
      about:
        'People tagged in the picture, at most 20, whose usernames have at most 30 characters. Usernames, or one string of @usernames with commas, are read too.',
      type: 'user_tags',
      // The longest username of the network.
      ...{ maxItems: 20, maxName: 30 },
    },
    collaborators: {
      about: 'Usernames of at most 3 collaborators, of at most 30 characters each. Ignored on a story.',
      ...{ type: 'list', commas: false, maxItems: 3, maxItem: 30, uses: notStory },
    },
    shareToFeed: {
      about: 'Whether a reel is shown in the feed too. Absent: as Instagram decides. Ignored on all but reels.',
      ...{ type: 'boolean', uses: ['reel'] },
    },
    coverUrl: {
      about: 'Public address of the cover of a reel, apart from `coverMediaId`. Ignored on all but reels.',
      ...{ type: 'url', uses: ['reel'] },
    },
    locationId: { about: 'Id of the page of a place. Ignored on a story.', type: 'string', uses: notStory },
    paidPartnership: { about: 'Marks the post as a paid partnership.', type: 'boolean', default: false },
  },
  banned: [],
  aiKey: null,
  insights,
  priorTimes: leisure,
};
