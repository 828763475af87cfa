import { count, derived, first, minutesOf, ofVideo, secondsOf } from '../figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '../insights-table.ts';
import { aac, anySize, eightBit420, h264, hevc, seconds, upToMB, within } from '../media-blocks.ts';
import type { ImageRules, MediaUseRules, NetworkMedia } from '../media-rules.ts';
import { evening } from '../prior-times.ts';
import type { NetworkRules } from '../rules.ts';
import { showsNothing } from '../visible-text.ts';

/** Pinterest. Figures: developers.pinterest.com, "Create Pin", "Media"; help.pinterest.com, product specifications. */

// 20 MB now, 10 MB on older pages; about 200 px is where "image too small" was seen.
const image: ImageRules = {
  ...anySize,
  formats: ['jpeg', 'png'],
  bytes: upToMB(10),
  short: { min: 200, max: 10_000 },
  target: 'large',
};

const files: MediaUseRules = {
  feed: {
    image,
    video: {
      ...anySize,
      containers: ['mp4', 'mov'],
      codecs: [h264, hevc],
      pixelFormats: eightBit420,
      // Sides and rate are unconfirmed.
      fps: { min: 1, max: 60 },
      constantRate: false,
      maxKbps: null,
      bytes: upToMB(2000),
      durationMs: seconds(4, 900),
      aspect: within(1 / 2, 1.91),
      short: { min: 240, max: 4096 },
      indexFirst: false,
      noEditList: false,
      audio: aac,
      target: '1080',
    },
    gif: null,
    document: null,
  },
  cover: { image: { ...image, target: 'thumbnail' }, video: null, gif: null, document: null },
};

const media: NetworkMedia = {
  // "Images must have the same width/height ratios."
  shapes: [
    { use: 'feed', kinds: ['image'], min: 1, max: 5, sameAspect: true },
    { use: 'feed', kinds: ['video'], min: 1, max: 1 },
  ],
  files,
};

/**
 * Pinterest, API v5. Source: developers.pinterest.com, "Get Pin analytics", "Get user account analytics".
 * Of a post `{analytics, pin}`: the analytics since the day of publication, at most 90 days back, which covers all the days
 * we poll; and the pin with its `pin_metrics`. Of an account `{user_account, analytics}` for one day.
 */
const since = (metric: string) => count(`analytics.all.summary_metrics.${metric}`);
const lifetime = (metric: string) => count(`analytics.all.lifetime_metrics.${metric}`);
const ofPin = (metric: string) => count(`pin.pin_metrics.lifetime_metrics.${metric}`);

const closeups = first(since('PIN_CLICK'), ofPin('pin_click'));
const outbound = first(since('OUTBOUND_CLICK'), ofPin('clickthrough'));

const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    impressions: first(since('IMPRESSION'), ofPin('impression')),
    likes: first(lifetime('TOTAL_REACTIONS'), ofPin('reaction')),
    comments: first(lifetime('TOTAL_COMMENTS'), ofPin('comment')),
    saves: since('SAVE'),
    clicks: closeups,
    clicksByType: derived('PIN_CLICK, OUTBOUND_CLICK', (raw) => {
      const pin_click = closeups.read(raw);
      const outbound_click = outbound.read(raw);
      if (pin_click === undefined || outbound_click === undefined) return undefined;
      return pin_click === null || outbound_click === null ? null : { pin_click, outbound_click };
    }),
    follows: since('USER_FOLLOW'),
    profileVisits: since('PROFILE_VISIT'),
    videoViews: ofVideo(since('VIDEO_MRC_VIEW')),
    videoCompletions: ofVideo(since('QUARTILE_95_PERCENT_VIEW')),
    // Milliseconds as observed; Pinterest documents no unit.
    watchTimeMinutes: ofVideo(minutesOf(since('VIDEO_V50_WATCH_TIME'))),
    avgViewDurationSeconds: ofVideo(secondsOf(since('VIDEO_AVG_WATCH_TIME'))),
  }),
  account: {
    ...unreportedAccount,
    followerCount: count('user_account.follower_count'),
    // Pinterest answers these three only to requests that name no metrics.
    profileViews: since('PROFILE_VISIT'),
    videoViews: since('VIDEO_MRC_VIEW'),
    videoWatchTimeMinutes: minutesOf(since('VIDEO_V50_WATCH_TIME')),
    contentPlays: since('VIDEO_START'),
  },
  demographics: null,
};

/** Pinterest, API v5. Figures: developers.pinterest.com, OpenAPI description 5.23, "Create Pin". */
export const pinterest: NetworkRules = {
  platform: 'pinterest',
  name: 'Pinterest',
  app: {
    // `https://api-sandbox.pinterest.com/v5` takes pins of an app that has trial access alone.
    addresses: { api: 'https://api.pinterest.com/v5', authorize: 'https://www.pinterest.com/oauth/' },
    countsCalls: true,
  },
  text: {
    limits: [{ unit: 'code_points', limit: 800 }],
  },
  media,
  // "Create Pin": `alt_text` of 500 characters, one for the pin.
  altTexts: [{ kinds: ['image', 'video'], limits: [{ unit: 'code_points', limit: 500 }] }],
  capabilities: {
    thread: false,
    firstComment: false,
    native: false,
    textOnly: false,
    altText: true,
    cover: true,
    aiLabel: false,
  },
  nativeWindow: null,
  publish: {
    handle: 'none',
    absenceIsProof: false,
    readsBack: 'own_posts',
    listsOwnPosts: true,
    settleWindowMs: 600_000,
    permalinks: ['https://www.pinterest.com/pin/{id}/'],
  },
  // "Access tiers": of trial access; standard access has none by the day.
  appBudget: { name: 'calls', limit: 1_000, zone: 'UTC', every: 'day', counts: 'calls' },
  overrides: {
    boardId: {
      about: 'Id of the board that the pin goes to. Without it the target fails when it is published.',
      type: 'string',
      required: { code: 'pinterest_board_required', message: 'Pinterest needs the override boardId' },
    },
    title: { about: 'Headline of at most 100 characters; the content is the description.', type: 'string', max: 100 },
    link: { about: 'Address that the pin leads to.', type: 'url', max: 2048 },
  },
  // "List boards".
  choices: { boardId: 'The boards of the account.' },
  title: (_content, { title }) => (typeof title === 'string' && !showsNothing(title) ? title : null),
  banned: [],
  aiKey: null,
  insights,
  priorTimes: evening,
};
