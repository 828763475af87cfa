import type { PlatformRules } from '#domain/platforms/rules.ts';

/** X, API v2. Figures: docs.x.com, "Counting characters", "Create Post", "Media best practices". */
export const x: PlatformRules = {
  platform: 'x',
  name: 'X',
  text: {
    limits: [{ unit: 'weighted', limit: 280 }],
    note: 'Weighted as twitter-text v3 does: Latin 1, most other scripts 2, an emoji 2, any link 23.',
  },
  // docs.x.com, "Media best practices": four photos, or one animated GIF, or one video.
  media: [
    { use: 'feed', kinds: ['image'], min: 0, max: 4 },
    { use: 'feed', kinds: ['gif'], min: 0, max: 1 },
    { use: 'feed', kinds: ['video'], min: 0, max: 1 },
  ],
  capabilities: {
    thread: true,
    firstComment: true,
    native: false,
    textOnly: true,
    altText: true,
    cover: false,
    aiLabel: true,
  },
  nativeWindow: null,
  publish: {
    // No idempotency key: a lost answer is looked for in the account's newest posts.
    handle: 'none',
    absenceIsProof: false,
    readsBack: 'own_posts',
    settleWindowMs: 600_000,
    permalinks: ['https://x.com/{username}/status/{id}', 'https://x.com/i/web/status/{id}'],
  },
  overrides: {
    quoteTweetId: { type: 'string', headOnly: true },
    replySettings: {
      type: 'enum',
      values: ['following', 'mentionedUsers', 'subscribers', 'verified'],
      aliases: { verifiedOnly: 'verified' },
      headOnly: true,
    },
    // Independent of the post's aiDisclosure, hence not `aiKey`.
    madeWithAi: { type: 'boolean', default: false },
    paidPartnership: { type: 'boolean', default: false },
    firstComment: { type: 'comment', asPost: true, headOnly: true },
  },
  banned: [],
  aiKey: null,
};
