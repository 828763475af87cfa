import { leisure } from '#domain/platforms/prior-times.ts';
import type { NetworkRules } from '#domain/platforms/rules.ts';
import { insights } from './insights.ts';
import { media } from './media.ts';

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
  insights,
  priorTimes: leisure,
};
