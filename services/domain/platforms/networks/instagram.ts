import type { MediaUse } from '#schemas/media.ts';
import {
  count,
  type FigureSource,
  mapped,
  minutesOf,
  ofVideo,
  orNull,
  renamed,
  secondsOf,
  url,
} from '../figure-source.ts';
import { type InsightsTable, type PostTable, unreportedAccount, unreportedPost } from '../insights-table.ts';
import { aac, anySize, eightBit420, h264, hevc, seconds, upToMB, within } from '../media-blocks.ts';
import type { ImageRules, MediaUseRules, NetworkMedia, VideoRules } from '../media-rules.ts';
import { followerDemographics, insight, insightAmount, insightBreakdown } from '../meta-insights.ts';
import { leisure } from '../prior-times.ts';
import type { NetworkRules } from '../rules.ts';

/** Instagram. Figures: developers.facebook.com, "IG User Media": image, reel and story specifications. */

const image: ImageRules = {
  ...anySize,
  formats: ['jpeg'],
  bytes: upToMB(8),
  aspect: within(4 / 5, 1.91),
  width: { min: 320, max: 1440 },
  target: 'social',
};

const reel: VideoRules = {
  ...anySize,
  containers: ['mp4', 'mov'],
  codecs: [h264, hevc],
  pixelFormats: eightBit420,
  fps: { min: 23, max: 60 },
  constantRate: false,
  maxKbps: 25_000,
  // One vendor reports 1 GB by now: unconfirmed.
  bytes: upToMB(300),
  durationMs: seconds(3, 900),
  aspect: within(0.01, 10),
  width: { min: 1, max: 1920 },
  indexFirst: true,
  noEditList: true,
  audio: { ...aac, maxKbps: 128 },
  target: '1080',
};

/** A gif is published as a video; documents are not. */
const none = { gif: null, document: null };

const files: MediaUseRules = {
  // A video of a feed post is published as a reel.
  feed: { ...none, image, video: reel },
  // The figures of videos in a carousel are practice, not documentation. Pictures are cropped to the first one's ratio.
  carousel: { ...none, image, video: { ...reel, bytes: upToMB(100), durationMs: seconds(3, 60) } },
  reel: { ...none, image: null, video: reel },
  story: {
    ...none,
    // 9:16 is advice: others are shown with bars by Instagram itself.
    image: { ...image, aspect: within(0.1, 10) },
    video: { ...reel, bytes: upToMB(100), durationMs: seconds(3, 60), aspect: within(0.1, 10) },
  },
  cover: { ...none, image: { ...image, aspect: within(0.1, 10) }, video: null },
};

const media: NetworkMedia = {
  shapes: [
    { use: 'feed', kinds: ['image'], min: 1, max: 1 },
    { use: 'carousel', kinds: ['image', 'video'], min: 2, max: 10 },
    { use: 'reel', kinds: ['video'], min: 1, max: 1 },
    // Several would be as many stories, each a post of its own.
    { use: 'story', kinds: ['image', 'video'], min: 1, max: 1 },
  ],
  files,
  // `thumb_offset` of a reel.
  coverFrame: true,
  useOf: (asked, kinds) => {
    if (asked !== null) return asked;
    if (kinds.length > 1) return 'carousel';
    // A single video is published as a reel whatever contentType says ("IG User Media", since 2023-07).
    return kinds[0] === 'video' || kinds[0] === 'gif' ? 'reel' : 'feed';
  },
};

/** `tap_forward` and `TAP_FORWARD` were both seen. */
const lowered = (source: FigureSource<Readonly<Record<string, number>>>) =>
  mapped(source, (reported) =>
    Object.fromEntries(Object.entries(reported).map(([label, n]) => [label.toLowerCase(), n])),
  );

const all: PostTable = {
  ...unreportedPost,
  // Instagram replaced `impressions` by `views` for media after 2024-07-02.
  impressions: insight('views'),
  reach: insight('reach'),
  shares: insight('shares'),
  totalInteractions: insight('total_interactions'),
  reposts: insight('reposts'),
  permalink: url('media.permalink'),
};

const afterwards = {
  follows: insight('follows'),
  profileVisits: insight('profile_visits'),
  profileActivity: insightBreakdown('profile_activity'),
};

const liked = { likes: insight('likes'), comments: insight('comments'), saves: insight('saved') };

/** Instagram documents no unit: a value over 1 is read as percent, since rates of 1 % and less were not seen. */
const fraction = (reported: number): string => (reported > 1 ? reported / 100 : reported).toFixed(4);

/**
 * Instagram. Sources: developers.facebook.com, "IG Media Insights" and "IG User Insights" (Graph API v25). Each
 * way to publish has its own set of metrics; a metric of another set fails the call.
 *
 * Of a post `{media, insights}`: the node (`permalink`), and all calls joined into one `data`. Of an account
 * `{user, insights, views, follower_demographics}`: the node (`followers_count`), the metrics of the day, `views` by
 * `media_product_type`, and the demographics by the breakdown they were asked with.
 */
const insights: InsightsTable = {
  post: {
    feed: { ...all, ...liked, ...afterwards },
    reel: {
      ...all,
      ...liked,
      videoViews: ofVideo(insight('views')),
      // Milliseconds as observed; Instagram documents no unit.
      watchTimeMinutes: ofVideo(minutesOf(insight('ig_reels_video_view_total_time'))),
      avgViewDurationSeconds: ofVideo(secondsOf(insight('ig_reels_avg_watch_time'))),
      skipRate: ofVideo(mapped(insightAmount('reels_skip_rate'), fraction)),
    },
    // Updated for 24 hours, and reported from 5 viewers on.
    story: {
      ...all,
      ...afterwards,
      comments: insight('replies'),
      navigation: renamed(lowered(insightBreakdown('navigation')), {
        forward: 'tap_forward',
        tap_back: 'tap_back',
        exit: 'tap_exit',
        next_story: 'swipe_forward',
      }),
      linkClicks: insight('link_clicks'),
    },
  },
  account: {
    ...unreportedAccount,
    followerCount: count('user.followers_count'),
    // Announced as removed on 2025-01-08, and still answered.
    profileViews: orNull(insight('profile_views')),
    accountsEngaged: insight('accounts_engaged'),
    profileLinkTaps: insight('profile_links_taps'),
    // Every kind that had views is listed.
    videoViews: mapped(insightBreakdown('views', 'views'), (reported) => reported.REELS ?? 0),
    contentPlays: insight('views', 'views'),
  },
  // From 100 followers on.
  demographics: followerDemographics,
};

/** "IG User Media": a story has neither caption, place nor collaborators. */
const notStory: readonly MediaUse[] = ['feed', 'carousel', 'reel'];

/** Instagram, Graph API v27. Figures: developers.facebook.com, "Instagram Platform: Content publishing", "IG User Media". */
export const instagram: NetworkRules = {
  platform: 'instagram',
  name: 'Instagram',
  app: {
    addresses: {
      api: 'https://graph.instagram.com',
      authorize: 'https://www.instagram.com/oauth/authorize',
      tokens: 'https://api.instagram.com',
    },
    version: 'v27.0',
  },
  text: {
    limits: [
      { unit: 'code_points', limit: 2200 },
      { unit: 'hashtags', limit: 30 },
      { unit: 'mentions', limit: 20 },
    ],
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
  // "Content publishing limit": the network says how much is used, and what the whole is; its pages name 50 and 100.
  postsInWindow: { limit: 50, seconds: 86_400 },
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
    // "Pages Search API": its search for pages wants "Page Public Metadata Access", which an app that posts does not have.
    locationId: {
      about:
        'Id of a page of Facebook that has an address, in digits: the place. No call lists places. On facebook.com it stands on the page under About, Page transparency; of a page that is connected here it is the `externalId` of that account. Another id fails at Instagram when the post is published. Ignored on a story.',
      ...{ type: 'string', uses: notStory },
    },
    paidPartnership: {
      about:
        'Marks the post as a paid partnership. Instagram takes it of accounts that are connected by Facebook; on others such a post fails.',
      ...{ type: 'boolean', default: false },
    },
  },
  banned: [],
  aiKey: null,
  insights,
  priorTimes: leisure,
};
