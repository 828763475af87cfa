import type { PlatformRules } from '#domain/platforms/rules.ts';

/** Instagram, Graph API v25. Figures: developers.facebook.com, "Instagram Platform: Content publishing", "IG User Media". */
export const instagram: PlatformRules = {
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
  media: [
    { use: 'feed', kinds: ['image'], min: 1, max: 1 },
    { use: 'carousel', kinds: ['image', 'video'], min: 2, max: 10 },
    { use: 'reel', kinds: ['video'], min: 1, max: 1 },
    // Several would be as many stories, each a post of its own.
    { use: 'story', kinds: ['image', 'video'], min: 1, max: 1 },
  ],
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
    settleWindowMs: 600_000,
    permalinks: ['https://www.instagram.com/p/{code}/'],
  },
  overrides: {
    contentType: { type: 'enum', values: ['feed', 'reel', 'story'] },
    firstComment: { type: 'comment', asPost: false },
    userTags: { type: 'user_tags', maxItems: 20 },
    collaborators: { type: 'list', commas: false, maxItems: 3 },
    shareToFeed: { type: 'boolean' },
    coverUrl: { type: 'url' },
    locationId: { type: 'string' },
    paidPartnership: { type: 'boolean', default: false },
  },
  banned: [],
  aiKey: null,
};
