import {
  asCount,
  asLabel,
  type Counted,
  count,
  counted,
  derived,
  dig,
  type FigureSource,
  first,
  items,
  mapped,
  minutesOf,
  ofVideo,
  orNull,
  renamed,
  sumOf,
} from '../figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '../insights-table.ts';
import { aac, anySize, eightBit420, h264, minUpToMB, pdf, seconds, upTo, upToMB, within } from '../media-blocks.ts';
import type { MediaUseRules, NetworkMedia } from '../media-rules.ts';
import { office } from '../prior-times.ts';
import type { NetworkRules } from '../rules.ts';

/** LinkedIn. Figures: learn.microsoft.com/linkedin, "Images API", "Videos API", "Documents API". */

// "Fewer than 36,152,320 pixels."
const maxPixels = 36_152_319;

const files: MediaUseRules = {
  feed: {
    // No limit of bytes is documented; 8 MB is practice.
    image: { ...anySize, formats: ['jpeg', 'png', 'gif'], bytes: upToMB(8), maxPixels, target: 'large' },
    video: {
      ...anySize,
      containers: ['mp4'],
      codecs: [h264],
      pixelFormats: eightBit420,
      // Rate, ratio and sides are those of the ads and help pages: unconfirmed here.
      fps: { min: 1, max: 60 },
      constantRate: false,
      maxKbps: null,
      // "Videos API": 75 KB to 500 MB.
      bytes: minUpToMB(500),
      durationMs: seconds(3, 1800),
      aspect: within(1 / 2.4, 2.4),
      long: upTo(4096),
      short: upTo(2304),
      indexFirst: false,
      noEditList: false,
      audio: aac,
      target: '1080',
    },
    gif: { ...anySize, bytes: upToMB(8), maxPixels, maxFrames: 250, maxPixelsOfAll: null },
    document: { contentTypes: pdf, bytes: upToMB(100) },
  },
};

const media: NetworkMedia = {
  shapes: [
    { use: 'feed', kinds: ['image', 'gif'], min: 0, max: 20 },
    { use: 'feed', kinds: ['video'], min: 0, max: 1 },
    { use: 'feed', kinds: ['document'], min: 0, max: 1 },
  ],
  files,
};

/**
 * LinkedIn, Marketing API 202609. Sources: learn.microsoft.com, "Organization Share Statistics", "Member Post
 * Statistics", "Video Analytics", "Social Metadata". Members and organizations have different
 * calls with different figures; the members of the answer show which of the two an account is.
 *
 * Of an organization `{organizationalEntityShareStatistics, videoAnalytics, socialMetadata}`, of a member
 * `{memberCreatorPostAnalytics, memberCreatorVideoAnalytics}`, the calls for single metrics joined into one `elements`.
 */
const statistics = 'organizationalEntityShareStatistics.elements';
/** LinkedIn leaves a post that nobody has seen out of the list, so an empty list is 0; a missing member stays missing. */
const ofShare = (...names: readonly string[]): FigureSource<number> => {
  const reported = first(...names.map((name) => count(`${statistics}.0.totalShareStatistics.${name}`)));
  return { ...reported, read: (raw) => (items(raw, statistics)?.length === 0 ? 0 : reported.read(raw)) };
};

/** `metricType` is a word since version 202605; before, it was an object with one member. */
const metricOf = (one: { readonly [member: string]: unknown }): unknown => {
  const { metricType } = one;
  return typeof metricType === 'object' && metricType !== null ? Object.values(metricType)[0] : metricType;
};
const listed = (call: string, metric: string): FigureSource<number> => ({
  ...count(metric),
  read: (raw) => {
    const one = items(raw, `${call}.elements`)?.find((each) => metricOf(each) === metric);
    return one?.count === undefined || one.count === null ? undefined : asCount(one.count, metric);
  },
});
const ofMember = (metric: string) => listed('memberCreatorPostAnalytics', metric);

/** LinkedIn reports it to members only. */
const memberOnly = (metric: string): FigureSource<number> => ({
  ...ofMember(metric),
  read: (raw) => ofMember(metric).read(raw) ?? (dig(raw, statistics) === undefined ? undefined : null),
});
const organizationOnly = <T>(source: FigureSource<T>): FigureSource<T> => ({
  ...source,
  read: (raw) => source.read(raw) ?? (dig(raw, 'memberCreatorPostAnalytics') === undefined ? undefined : null),
});

const watchedMs = first(
  count('videoAnalytics.TIME_WATCHED.elements.0.value'),
  listed('memberCreatorVideoAnalytics', 'VIDEO_WATCH_TIME'),
);

const reactions: FigureSource<Readonly<Record<string, unknown>>> = derived(
  'socialMetadata.reactionSummaries',
  (raw) => {
    const reported = dig(raw, 'socialMetadata.reactionSummaries');
    if (reported === null || reported === undefined) return reported;
    return Object.fromEntries(
      ['LIKE', 'EMPATHY', 'ENTERTAINMENT'].flatMap((type) => {
        const one = dig(reported, `${type}.count`);
        return one === undefined ? [] : [[type, one] as const];
      }),
    );
  },
);

const facets = {
  followerCountsByGeoCountry: 'geo',
  followerCountsByFunction: 'function',
  followerCountsBySeniority: 'seniority',
  followerCountsByIndustry: 'industry',
  followerCountsByStaffCountRange: 'staffCountRange',
} as const;

const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    impressions: first(ofMember('IMPRESSION'), ofShare('impressionCount')),
    // The name was observed with and without an s.
    reach: first(ofMember('MEMBERS_REACHED'), ofShare('uniqueImpressionsCount', 'uniqueImpressionsCounts')),
    likes: first(ofMember('REACTION'), ofShare('likeCount')),
    comments: first(ofMember('COMMENT'), ofShare('commentCount')),
    // Reshares count as shares, so they are not reposts too.
    shares: first(ofMember('RESHARE'), ofShare('shareCount')),
    saves: memberOnly('POST_SAVE'),
    clicks: organizationOnly(ofShare('clickCount')),
    clicksByType: mapped(memberOnly('LINK_CLICKS'), (LINK_CLICKS) => ({ LINK_CLICKS })),
    follows: memberOnly('FOLLOWER_GAINED_FROM_CONTENT'),
    profileVisits: memberOnly('PROFILE_VIEW_FROM_CONTENT'),
    videoViews: ofVideo(
      first(count('videoAnalytics.VIDEO_VIEW.elements.0.value'), listed('memberCreatorVideoAnalytics', 'VIDEO_PLAY')),
    ),
    watchTimeMinutes: ofVideo(minutesOf(watchedMs)),
    // The other kinds of reactions are in `likes` alone.
    reactionsByType: organizationOnly(renamed(reactions, { like: 'LIKE', love: 'EMPATHY', haha: 'ENTERTAINMENT' })),
  }),
  account: {
    ...unreportedAccount,
    followerCount: first(
      count('networkSizes.firstDegreeSize'),
      count('memberFollowersCount.elements.0.memberFollowersCount'),
    ),
    profileViews: orNull(
      count('organizationPageStatistics.elements.0.totalPageStatistics.views.allPageViews.pageViews'),
    ),
  },
  demographics: derived('organizationalEntityFollowerStatistics', demographicsOf),
};

function demographicsOf(raw: unknown): Record<string, Counted> | undefined {
  const path = 'organizationalEntityFollowerStatistics.elements.0';
  const followers = sumOf(count('followerCounts.organicFollowerCount'), count('followerCounts.paidFollowerCount'));
  const found = Object.entries(facets).flatMap(([member, label]) => {
    const list = items(raw, `${path}.${member}`);
    if (list === null || list === undefined) return [];
    return [
      [label, counted(list.map((one) => [asLabel(one[label], member), followers.read(one) ?? 0] as const))],
    ] as const;
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

/** LinkedIn, Posts API. Figures: learn.microsoft.com/linkedin, "Posts API", "Comments API", "MultiImage API". */
export const linkedin: NetworkRules = {
  platform: 'linkedin',
  name: 'LinkedIn',
  app: {
    addresses: {
      ...{ api: 'https://api.linkedin.com/rest', authorize: 'https://www.linkedin.com/oauth/v2/authorization' },
      ...{ tokens: 'https://www.linkedin.com/oauth/v2', login: 'https://api.linkedin.com/v2' },
      uploads: 'https://www.linkedin.com/dms-uploads',
    },
    version: '202608',
    countsCalls: true,
    // Those of the Community Management API and of Sign In with LinkedIn.
    scopes: [
      ...['openid', 'profile', 'w_member_social', 'w_organization_social', 'r_organization_social'],
      ...['rw_organization_admin', 'r_member_postAnalytics', 'r_member_profileAnalytics'],
    ],
  },
  text: {
    // Counted before the escapes of little text format.
    limits: [{ unit: 'code_points', limit: 3000 }],
  },
  media,
  // "Images API", "MultiImage API": `altText` of 4,086 characters; a video has none.
  altTexts: [{ kinds: ['image', 'gif'], limits: [{ unit: 'code_points', limit: 4086 }] }],
  capabilities: {
    thread: false,
    firstComment: true,
    native: false,
    textOnly: true,
    altText: true,
    cover: false,
    aiLabel: false,
  },
  nativeWindow: null,
  publish: {
    handle: 'none',
    absenceIsProof: false,
    readsBack: 'own_posts',
    listsOwnPosts: true,
    settleWindowMs: 600_000,
    // "Posts API", permissions: `r_organization_social` reads posts of a page; `r_member_social` is a closed programme.
    ofAccount: (externalId) =>
      externalId.startsWith('urn:li:organization:') ? {} : { readsBack: 'nothing', listsOwnPosts: false },
    permalinks: ['https://www.linkedin.com/feed/update/{id}/'],
  },
  // "Organization Access Control": pages that the login administers.
  choices: {
    organization:
      'The organizations for which the login of the account may post; each is connected as an account of its own.',
  },
  // "Rate limiting": of the development tier; the portal shows what a standard one has. Counted anew at 00:00 UTC.
  appBudget: { name: 'calls', limit: 500, zone: 'UTC', every: 'day', counts: 'calls' },
  overrides: {
    visibility: { about: 'Who sees the post.', type: 'enum', values: ['PUBLIC', 'CONNECTIONS'], default: 'PUBLIC' },
    firstComment: {
      about:
        'A comment on the published post, at most 1,250 characters. If it fails, the post stays published and `firstCommentIssue` says why.',
      type: 'comment',
      asPost: false,
      max: 1250,
    },
  },
  banned: [],
  aiKey: null,
  insights,
  priorTimes: office,
};
