import { leisure } from '#domain/platforms/prior-times.ts';
import type { NetworkRules } from '#domain/platforms/rules.ts';
import { insights } from './insights.ts';
import { media } from './media.ts';

/** Facebook Pages, Graph API v25. Figures: developers.facebook.com, "Pages API: Posts", "Page Feed", "Page Video Reels". */
export const facebook: NetworkRules = {
  platform: 'facebook',
  name: 'Facebook',
  text: {
    limits: [{ unit: 'code_points', limit: 63_206 }],
    note: 'Message of 63,206 characters.',
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
