import { evening } from '#domain/platforms/prior-times.ts';
import type { NetworkRules } from '#domain/platforms/rules.ts';
import { insights } from './insights.ts';
import { media } from './media.ts';

/** TikTok, Content Posting API v2. Figures: developers.tiktok.com, "Direct Post", "Media transfer guide", "Content sharing guidelines". */
export const tiktok: NetworkRules = {
  platform: 'tiktok',
  name: 'TikTok',
  text: {
    limits: [{ unit: 'utf16_units', limit: 2200 }],
    note: 'Caption of 2,200 UTF-16 units.',
  },
  media,
  altTexts: [],
  capabilities: {
    thread: false,
    firstComment: false,
    native: false,
    textOnly: false,
    altText: false,
    cover: false,
    aiLabel: true,
  },
  nativeWindow: null,
  publish: {
    // A pulled photo is published from the very call that hands out the publish_id: a lost answer leaves no handle, so
    // absence proves nothing. The source URL may be pulled for an hour ("Media transfer guide").
    handle: 'upload',
    absenceIsProof: false,
    readsBack: 'own_posts',
    // Its list has public videos only.
    listsOwnPosts: false,
    settleWindowMs: 3_600_000,
    permalinks: ['https://www.tiktok.com/@{username}/video/{id}'],
  },
  overrides: {
    privacyLevel: {
      about:
        'Who sees the post: one of the levels that the account allows. Without it the target fails when it is published.',
      type: 'enum',
      values: ['PUBLIC_TO_EVERYONE', 'MUTUAL_FOLLOW_FRIENDS', 'FOLLOWER_OF_CREATOR', 'SELF_ONLY'],
      // "Query Creator Info": `privacy_level_options` of the account.
      grantedBy: 'privacy_level.',
      required: { code: 'tiktok_privacy_level_required', message: 'TikTok needs the override privacyLevel' },
    },
    yourBrand: { about: 'Discloses that the post promotes your own brand.', type: 'boolean', default: false },
    brandedContent: {
      about: 'Discloses that the post promotes another brand; not with privacyLevel SELF_ONLY.',
      type: 'boolean',
      default: false,
    },
    disableComment: { about: 'Turns comments off.', type: 'boolean', default: false },
    disableDuet: { about: 'Forbids duets.', type: 'boolean', default: false },
    disableStitch: { about: 'Forbids stitches.', type: 'boolean', default: false },
  },
  banned: [
    {
      when: { brandedContent: true, privacyLevel: 'SELF_ONLY' },
      path: 'brandedContent',
      code: 'tiktok_branded_content_private',
      message: 'brandedContent cannot be combined with privacyLevel SELF_ONLY',
    },
  ],
  aiKey: 'isAigc',
  insights,
  priorTimes: evening,
};
