import type { PlatformRules } from '#domain/platforms/rules.ts';

/** Facebook Pages, Graph API v25. Figures: developers.facebook.com, "Pages API: Posts", "Page Feed", "Page Video Reels". */
export const facebook: PlatformRules = {
  platform: 'facebook',
  name: 'Facebook',
  text: {
    limits: [{ unit: 'code_points', limit: 63_206 }],
    note: 'Message of 63,206 characters.',
  },
  // Photos and a video do not go together; ten photos are practice, not documentation.
  media: [
    { use: 'feed', kinds: ['image'], min: 0, max: 10 },
    { use: 'feed', kinds: ['video'], min: 0, max: 1 },
    { use: 'reel', kinds: ['video'], min: 1, max: 1 },
    { use: 'story', kinds: ['image', 'video'], min: 1, max: 1 },
  ],
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
  nativeWindow: { minMs: 600_000, maxMs: 29 * 86_400_000 },
  publish: {
    // Unpublished photos and video ids are handles, but /feed itself takes none: the same call makes a second post.
    handle: 'container',
    absenceIsProof: false,
    readsBack: 'own_posts',
    settleWindowMs: 900_000,
    permalinks: ['https://www.facebook.com/{id}'],
  },
  overrides: {
    contentType: { type: 'enum', values: ['feed', 'reel', 'story'], default: 'feed' },
    firstComment: { type: 'comment', asPost: false },
  },
  banned: [],
  aiKey: null,
};
