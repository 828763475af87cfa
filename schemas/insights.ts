import { type Static, type TSchema, Type } from 'typebox';
import { type EventOf, Instant, Nullable, Platform, Uuid } from './common.ts';
import { Named, said, shownAs } from './published.ts';

/**
 * Figures that networks report for posts and accounts. In every set of figures absent means that the network was not
 * asked, null that it does not report the figure, 0 that it reported zero. Figures are lifetime counts at `observedAt`,
 * as the network gave them.
 */

const most = Number.MAX_SAFE_INTEGER;
const Amount = Type.Integer({ minimum: 0, maximum: most });
const Label = Type.String({ maxLength: 100 });
const Counts = Named(
  'CountsByLabel',
  Type.Record(Label, Amount, { description: 'Counts by label, under the names of the network.' }),
);
const AudienceBreakdown = Named(
  'AudienceBreakdown',
  Type.Record(
    Label,
    Named(
      'ValuesByLabel',
      Type.Record(Label, Type.Number({ minimum: 0 }), {
        description: 'Figures by label, under the names of the network: counts, or percent.',
      }),
    ),
    { description: 'Viewers by dimension, then by label.' },
  ),
);

/**
 * What each figure of a post counts, its unit, and the networks that report it. A test compares the networks with the
 * tables in services/domain/platforms.
 */
export const figureWords = {
  impressions:
    'Times shown, repeated views included. Reported by facebook, instagram, linkedin, pinterest, threads, x.',
  reach: 'Different people who saw the post. Reported by facebook, instagram, linkedin, threads.',
  likes: 'Reactions of every kind; none for stories. Reported by every network.',
  comments:
    'Comments; replies on bluesky, threads and x, and to stories on instagram; on telegram, messages in the linked group. Reported by every network.',
  shares:
    'Times shared onward; on x without reposts. Reported by facebook, instagram, linkedin, threads, tiktok, x, youtube.',
  saves:
    'Times saved or bookmarked; on linkedin for posts of members only. Reported by bluesky, instagram, linkedin, pinterest, x.',
  clicks:
    'Clicks that published nothing by themselves: a like or a share is none. On facebook all of them, on linkedin all of them for posts of organizations only, on pinterest those that open the pin, on x those on a link. Reported by facebook, linkedin, pinterest, x.',
  permalink: 'Address of the post on its network. Reported by facebook, instagram, threads, tiktok.',
  reactionsByType: 'Reactions by kind. Reported by facebook, linkedin.',
  clicksByType:
    'Clicks by what was clicked, under the names of the network; on linkedin those on a link, of posts of members. Reported by facebook, linkedin, pinterest.',
  profileActivity:
    'Actions on the profile after the post was seen, by kind, under the names of the network; not of reels. Reported by instagram.',
  navigation: 'What viewers of a story did next. Reported by instagram.',
  follows:
    'Follows that the post caused: on facebook of videos, on instagram not of reels, on linkedin of posts of members. Reported by facebook, instagram, linkedin, pinterest, x.',
  profileVisits:
    'Times the profile was opened after the post was seen: on instagram not of reels, on linkedin of posts of members. Reported by instagram, linkedin, pinterest, x.',
  linkClicks:
    'Taps on the link sticker of a story; clicks on links of other posts are in `clicksByType`. Reported by instagram.',
  totalInteractions:
    'Interactions, as the network adds them up; on threads the sum of likes, replies, reposts, quotes and shares. Reported by instagram, threads, x.',
  reposts: 'Reposts without words of their own. Reported by bluesky, instagram, threads, x.',
  quotes: 'Reposts with words of their own. Reported by bluesky, threads, x.',
  videoViews:
    'Plays of at least three seconds, or what the network calls a view of a video; on instagram of reels only. Reported by facebook, instagram, linkedin, pinterest, tiktok, x, youtube.',
  videoCompletions:
    'Plays that reached the end or 30 seconds, on pinterest 95 % of the video; on facebook not of reels. Reported by facebook, pinterest.',
  skipRate: 'Part of the plays of a reel that viewers skipped, 0 to 1, as a decimal string. Reported by instagram.',
  watchTimeMinutes:
    'Minutes that all viewers together watched, in whole minutes; on instagram of reels only. Reported by facebook, instagram, linkedin, pinterest, x, youtube.',
  avgViewDurationSeconds:
    'Seconds that a viewer stays on average, in whole seconds; on instagram of reels only. Reported by facebook, instagram, pinterest, x, youtube.',
  avgViewPercentage:
    'Part of the video that a viewer sees on average, in percent: 0 to 100, and more where viewers watch again. Reported by x, youtube.',
  subscribersGained: 'Subscribers that the video gained. Reported by youtube.',
  subscribersLost: 'Subscribers that the video lost. Reported by youtube.',
  audienceRetention:
    'How many viewers are left at each point of the video, in its order. Reported by facebook, x, youtube.',
  trafficSources: 'Views by where the viewers came from, under the names of the network. Reported by youtube.',
  audienceBreakdown:
    'Viewers by dimension, then by label, under the names of the network: `ageGroup` and `gender` in percent of the viewers, `country` and `deviceType` in views. Reported by youtube.',
} as const;

export const unknownFigure = 'Null: the network does not report it for such a post. Absent: not fetched yet.';
const Figure = <S extends TSchema>(name: keyof typeof figureWords, schema: S, examples?: readonly unknown[]) =>
  Type.Optional(
    said(Nullable(schema), `${figureWords[name]} ${unknownFigure}`, examples === undefined ? {} : { examples }),
  );
const Count = (name: keyof typeof figureWords) => Figure(name, Amount);

/** A count inside of a figure: the network lists some kinds and leaves others out. */
const Kind = (words: string) =>
  Type.Optional(said(Nullable(Amount), `${words} Null: not reported. Absent: the network did not list this kind.`));

const ReactionsByType = Named(
  'ReactionsByType',
  Type.Object(
    {
      like: Kind('Likes.'),
      love: Kind('Hearts; on linkedin, “love”.'),
      wow: Kind('Reactions of surprise.'),
      haha: Kind('Laughs; on linkedin, “funny”.'),
      sad: Kind('Reactions of sorrow.'),
      angry: Kind('Reactions of anger.'),
    },
    {
      description:
        'Reactions to a post by kind. facebook has these six; linkedin has the first two and `haha` of posts of organizations, and counts its other kinds in `likes` alone.',
    },
  ),
);

const StoryNavigation = Named(
  'StoryNavigation',
  Type.Object(
    {
      forward: Kind('Taps forward, to the next part of the story.'),
      tap_back: Kind('Taps back, to the part before.'),
      exit: Kind('Times a viewer left the story.'),
      next_story: Kind('Swipes forward, to the story of another account.'),
    },
    { description: 'What viewers of a story did next, as numbers of taps and swipes.' },
  ),
);

const RetentionPoint = Named(
  'RetentionPoint',
  Type.Object(
    {
      position: Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'The point of the video, as a fraction of its length: 0 is its start, 1 its end.',
      }),
      ratio: Type.Number({
        minimum: 0,
        maximum: 100,
        description:
          'Viewers who watch this point, as a fraction of all plays: 1 is all of them; above 1 where viewers watch it again.',
      }),
    },
    { description: 'How many viewers are left at one point of a video.' },
  ),
);

/** Members of spec 2.8 except the derived ones, in its order. */
export const PostFigures = Type.Object({
  impressions: Count('impressions'),
  reach: Count('reach'),
  likes: Count('likes'),
  comments: Count('comments'),
  shares: Count('shares'),
  saves: Count('saves'),
  clicks: Count('clicks'),
  permalink: Figure('permalink', Type.String({ maxLength: 2000 }), ['https://www.threads.com/@brand/post/DUq3xKxk1aB']),
  reactionsByType: Figure('reactionsByType', ReactionsByType),
  clicksByType: Figure('clicksByType', Counts, [{ 'link clicks': 31, 'photo view': 12 }]),
  profileActivity: Figure('profileActivity', Counts, [{ BIO_LINK_CLICKED: 3, EMAIL: 1 }]),
  navigation: Figure('navigation', StoryNavigation),
  follows: Count('follows'),
  profileVisits: Count('profileVisits'),
  linkClicks: Count('linkClicks'),
  totalInteractions: Count('totalInteractions'),
  reposts: Count('reposts'),
  quotes: Count('quotes'),
  videoViews: Count('videoViews'),
  videoCompletions: Count('videoCompletions'),
  skipRate: Figure('skipRate', Type.String({ pattern: '^(0(\\.\\d{1,6})?|1(\\.0{1,6})?)$' }), ['0.3125']),
  watchTimeMinutes: Count('watchTimeMinutes'),
  avgViewDurationSeconds: Count('avgViewDurationSeconds'),
  avgViewPercentage: Figure('avgViewPercentage', Type.Number({ minimum: 0, maximum: 1000 })),
  subscribersGained: Count('subscribersGained'),
  subscribersLost: Count('subscribersLost'),
  audienceRetention: Figure('audienceRetention', Type.Array(RetentionPoint, { maxItems: 200 })),
  trafficSources: Figure('trafficSources', Counts, [{ YT_SEARCH: 700, EXT_URL: 400 }]),
  audienceBreakdown: Figure('audienceBreakdown', AudienceBreakdown, [
    { gender: { female: 41.5, male: 58.5 }, country: { DE: 900, AT: 200 } },
  ]),
});
export type PostFigures = Static<typeof PostFigures>;

const OfAccount = (words: string) => Type.Optional(said(Nullable(Amount), words));

/**
 * Figures of an account. `followerCount` is a snapshot; the others are of the one day `figuresDay`, a day of the
 * network's own.
 */
export const AccountFigures = Type.Object({
  followerCount: OfAccount('Followers at the moment of the snapshot. Reported by every network.'),
  profileViews: OfAccount(
    'Times the profile or the page was viewed; on linkedin of organizations only. Reported by facebook, instagram, linkedin, pinterest, threads.',
  ),
  accountsEngaged: OfAccount('Different accounts that engaged with the account. Reported by instagram.'),
  profileLinkTaps: OfAccount(
    'Taps on the links and contact buttons of the profile. Reported by facebook, instagram, threads.',
  ),
  videoViews: OfAccount(
    'Plays of all videos of the account; on instagram of reels only. Reported by facebook, instagram, pinterest, youtube.',
  ),
  videoWatchTimeMinutes: OfAccount(
    'Minutes watched of all videos of the account, in whole minutes for each day. Reported by facebook, pinterest, youtube.',
  ),
  contentPlays: OfAccount('Times its content was played or displayed. Reported by facebook, instagram, pinterest.'),
});
export type AccountFigures = Static<typeof AccountFigures>;

export const Demographics = Named(
  'Demographics',
  Type.Record(Label, Counts, {
    description:
      'Followers of an account by dimension, then by label: a count of people for each label. Dimensions and labels are those of the network, and none is always there: country, city, age, gender, industry and others appear. Reported by facebook, instagram, linkedin, threads.',
    examples: [{ country: { DE: 9310, AT: 2104 }, age: { '25-34': 6020 } }],
  }),
);
export type Demographics = Static<typeof Demographics>;

/** The whole answer of a network about an account. */
export const AccountObservedFigures = Type.Object({
  ...AccountFigures.properties,
  demographics: Type.Optional(Nullable(Demographics)),
});

/** A day of a calendar, without a zone. The pattern costs every event less than the format does. */
export const LocalDate = shownAs(
  Type.String({
    pattern: '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$',
    description: 'A day, YYYY-MM-DD.',
    expects: 'a day, such as 2026-01-31',
    examples: ['2026-01-31'],
  }),
  { format: 'date' },
);

const about = {
  accountId: Uuid,
  clientId: Uuid,
  platform: Platform,
  /** When the network answered, by its own clock. */
  observedAt: Instant,
  /** The day of `observedAt` in the zone that the workspace then had; the grains use these days. */
  day: LocalDate,
  /** Adapter and version of its mapping: `sandbox/1`. */
  source: Type.String({ minLength: 1, maxLength: 100 }),
  /** The network's own figures, unchanged. */
  raw: Type.Unknown(),
  /**
   * Of the network's answer; absent where the event is not an answer as it came. Where it is that of the event before, `raw` is null:
   * the answer is the one of the newest event before that has it. The figures are there all the same, and show that
   * they still held at `observedAt`.
   */
  rawHash: Type.Optional(Type.String({ pattern: '^[\\w-]{22}$' })),
} as const;

export const targetmetricsEvents = {
  TargetMetricsObserved: Type.Object({
    ...about,
    targetId: Uuid,
    postId: Uuid,
    externalId: Type.String({ minLength: 1, maxLength: 500 }),
    publishedAt: Instant,
    figures: PostFigures,
    /** The network no longer shows the post; its figures are final, from the last observation before. */
    platformRemovedAt: Nullable(Instant),
  }),
} as const;
export type TargetMetricsEvent = EventOf<typeof targetmetricsEvents>;

export const accountmetricsEvents = {
  AccountMetricsObserved: Type.Object({
    ...about,
    figures: AccountFigures,
    /** The network's own day of its daily figures; null: it reports none. */
    figuresDay: Nullable(LocalDate),
    /** Absent: not requested; null: the network does not report them. A snapshot of the present. */
    demographics: Type.Optional(Nullable(Demographics)),
  }),
} as const;
export type AccountMetricsEvent = EventOf<typeof accountmetricsEvents>;

/** Counters that add up over days as gains, and over posts; their order is that of the bits in `fetched`. */
export const counters = [
  'impressions',
  'reach',
  'likes',
  'comments',
  'shares',
  'saves',
  'clicks',
  'follows',
  'profileVisits',
  'linkClicks',
  'totalInteractions',
  'reposts',
  'quotes',
  'videoViews',
  'videoCompletions',
  'watchTimeMinutes',
  'subscribersGained',
  'subscribersLost',
] as const satisfies readonly (keyof PostFigures)[];
export type CounterName = (typeof counters)[number];

/**
 * Counters of people, each counted once: over a post's whole life, or an account's single day. They do not add up,
 * since one person may be in both, and no network reports one for a window of several days.
 */
export const peopleCounters = ['reach'] as const satisfies readonly CounterName[];
export const dailyPeople = ['accountsEngaged'] as const satisfies readonly (keyof AccountFigures)[];
