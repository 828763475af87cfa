import { count, url } from '../figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '../insights-table.ts';
import { aac, anySize, eightBit420, h264, hevc, seconds, upTo, upToMB, vp8, vp9 } from '../media-blocks.ts';
import type { MediaUseRules, NetworkMedia } from '../media-rules.ts';
import { evening } from '../prior-times.ts';
import type { NetworkRules, Terms } from '../rules.ts';

/** TikTok. Figures: developers.tiktok.com, "Media transfer guide", "Direct Post" (video and photo restrictions). */
const files: MediaUseRules = {
  feed: {
    // PNG is refused.
    image: {
      ...anySize,
      formats: ['jpeg', 'webp'],
      bytes: upToMB(20),
      long: upTo(1920),
      short: upTo(1080),
      target: 'social',
    },
    video: {
      ...anySize,
      containers: ['mp4', 'mov', 'webm'],
      codecs: [h264, hevc, vp8, vp9],
      pixelFormats: eightBit420,
      fps: { min: 23, max: 60 },
      constantRate: false,
      maxKbps: null,
      bytes: upToMB(4000),
      // The interface's ceiling; a creator's own may be lower and is asked for before each post. The low end is unconfirmed.
      durationMs: seconds(3, 600),
      long: { min: 360, max: 4096 },
      short: { min: 360, max: 4096 },
      indexFirst: false,
      noEditList: false,
      audio: {
        ...aac,
        codecs: [...aac.codecs, { codec: 'opus', profiles: null }, { codec: 'vorbis', profiles: null }],
      },
      target: '1080',
    },
    gif: null,
    document: null,
  },
};

const media: NetworkMedia = {
  shapes: [
    { use: 'feed', kinds: ['video'], min: 1, max: 1 },
    { use: 'feed', kinds: ['image'], min: 1, max: 35 },
  ],
  files,
  // "video_cover_timestamp_ms" ("Direct Post"); it takes no picture as a cover.
  coverFrame: true,
};

/**
 * TikTok, Content Posting and Display API v2. Source: developers.tiktok.com, "Query Videos": four counters of public
 * posts; "Get User Info". `raw` is the video, or the user, as it stands in `data`.
 */
const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    // A view is no impression, and TikTok reports no impressions.
    videoViews: count('view_count'),
    likes: count('like_count'),
    comments: count('comment_count'),
    shares: count('share_count'),
    permalink: url('share_url'),
  }),
  account: { ...unreportedAccount, followerCount: count('follower_count') },
  demographics: null,
};

/**
 * The file by which TikTok sees that the addresses below its folder are the operator's: it fetches pictures from no other
 * ("Media transfer guide", "Pull from URL"; "Set Up Development Configuration", "Verify URL ownership"; the form is that of files
 * which TikTok gave out, seen on 2026-11-29).
 */
export const siteProofOfTikTok = (token: string): { readonly name: string; readonly text: string } => ({
  name: `tiktok${token}.txt`,
  text: `tiktok-developers-site-verification=${token}`,
});

const legal = 'https://www.tiktok.com/legal/page/global';
const music: Terms = { name: 'Music Usage Confirmation', url: `${legal}/music-usage-confirmation/en` };
const branded: Terms = { name: 'Branded Content Policy', url: `${legal}/bc-policy/en` };

/** TikTok, Content Posting API v2. Figures: developers.tiktok.com, "Direct Post", "Media transfer guide", "Content sharing guidelines". */
export const tiktok: NetworkRules = {
  platform: 'tiktok',
  name: 'TikTok',
  app: {
    addresses: { api: 'https://open.tiktokapis.com/v2', authorize: 'https://www.tiktok.com/v2/auth/authorize/' },
    countsCalls: true,
  },
  text: {
    limits: [{ unit: 'utf16_units', limit: 2200 }],
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
  // "Query Creator Info": to be called before each post, and where the post is shown to its author.
  asksFirst: true,
  // "Content sharing guidelines", which TikTok's audit holds a page against.
  agreedTo: ({ brandedContent }) => (brandedContent === true ? [branded, music] : [music]),
  showsNickname: true,
  choices: { privacyLevel: 'The privacy levels that the account allows now.' },
  // "Content sharing guidelines": of a client that is not audited; an audited one has its own number.
  appBudget: { name: 'accounts', limit: 5, zone: 'UTC', every: 'day', counts: 'accounts' },
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
