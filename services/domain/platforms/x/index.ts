import { talk } from '#domain/platforms/prior-times.ts';
import type { NetworkRules } from '#domain/platforms/rules.ts';
import { insights } from './insights.ts';
import { media } from './media.ts';

/** X, API v2. Figures: docs.x.com, "Counting characters", "Create Post", "Media best practices". */
export const x: NetworkRules = {
  platform: 'x',
  name: 'X',
  text: {
    limits: [{ unit: 'weighted', limit: 280 }],
    note: 'Weighted as twitter-text v3 does: Latin 1, most other scripts 2, an emoji 2, any link 23.',
  },
  media,
  // docs.x.com, "Create Media metadata": 1,000 characters, with a picture or a GIF.
  altTexts: [{ kinds: ['image', 'gif'], limits: [{ unit: 'code_points', limit: 1000 }] }],
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
    listsOwnPosts: true,
    settleWindowMs: 600_000,
    permalinks: ['https://x.com/{username}/status/{id}', 'https://x.com/i/web/status/{id}'],
  },
  overrides: {
    quoteTweetId: { about: 'Id of the post that this one quotes.', type: 'string', headOnly: true },
    replySettings: {
      about: 'Who may reply. Absent: everyone. `verifiedOnly` is read as `verified`.',
      type: 'enum',
      values: ['following', 'mentionedUsers', 'subscribers', 'verified'],
      aliases: { verifiedOnly: 'verified' },
      headOnly: true,
    },
    // Independent of the post's aiDisclosure, hence not `aiKey`.
    madeWithAi: {
      about: 'Marks the post as made with AI, whatever the `aiDisclosure` of the post says.',
      type: 'boolean',
      default: false,
    },
    paidPartnership: { about: 'Marks the post as a paid partnership.', type: 'boolean', default: false },
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
