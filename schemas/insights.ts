import { type Static, Type } from 'typebox';
import { type EventOf, Instant, Nullable, Platform, Uuid } from './common.ts';
import { Named } from './published.ts';

/**
 * Figures that networks report for posts and accounts. In every set of figures absent means that the network was not
 * asked, null that it does not report the figure, 0 that it reported zero. Figures are lifetime counts at `observedAt`,
 * as the network gave them.
 */

const most = Number.MAX_SAFE_INTEGER;
const Count = Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: most })));
const Label = Type.String({ maxLength: 100 });
const Counts = Type.Record(Label, Type.Integer({ minimum: 0, maximum: most }));
const Text = (maxLength: number) => Type.String({ maxLength });

/** Members of spec 2.8 except the derived ones, in its order. */
export const PostFigures = Type.Object({
  impressions: Count,
  reach: Count,
  likes: Count,
  comments: Count,
  shares: Count,
  saves: Count,
  clicks: Count,
  permalink: Type.Optional(Nullable(Text(2000))),
  reactionsByType: Type.Optional(
    Nullable(
      Named(
        'ReactionsByType',
        Type.Object({ like: Count, love: Count, wow: Count, haha: Count, sad: Count, angry: Count }),
      ),
    ),
  ),
  clicksByType: Type.Optional(Nullable(Counts)),
  profileActivity: Type.Optional(Nullable(Counts)),
  navigation: Type.Optional(
    Nullable(
      Named('StoryNavigation', Type.Object({ forward: Count, tap_back: Count, exit: Count, next_story: Count })),
    ),
  ),
  follows: Count,
  profileVisits: Count,
  linkClicks: Count,
  totalInteractions: Count,
  reposts: Count,
  quotes: Count,
  videoViews: Count,
  videoCompletions: Count,
  /** Decimal string, 0 to 1. */
  skipRate: Type.Optional(Nullable(Type.String({ pattern: '^(0(\\.\\d{1,6})?|1(\\.0{1,6})?)$' }))),
  watchTimeMinutes: Count,
  avgViewDurationSeconds: Count,
  /** 0 to 100. */
  avgViewPercentage: Type.Optional(Nullable(Type.Number({ minimum: 0, maximum: 1000 }))),
  subscribersGained: Count,
  subscribersLost: Count,
  audienceRetention: Type.Optional(
    Nullable(
      Type.Array(
        Named(
          'RetentionPoint',
          Type.Object({
            position: Type.Number({ minimum: 0, maximum: 1 }),
            ratio: Type.Number({ minimum: 0, maximum: 100 }),
          }),
        ),
        { maxItems: 200 },
      ),
    ),
  ),
  trafficSources: Type.Optional(Nullable(Counts)),
  audienceBreakdown: Type.Optional(Nullable(Type.Record(Label, Type.Record(Label, Type.Number({ minimum: 0 }))))),
});
export type PostFigures = Static<typeof PostFigures>;

/**
 * Figures of an account. `followerCount` is a snapshot; the others are of the one day `figuresDay`, a day of the
 * network's own.
 */
export const AccountFigures = Type.Object({
  followerCount: Count,
  profileViews: Count,
  accountsEngaged: Count,
  profileLinkTaps: Count,
  videoViews: Count,
  videoWatchTimeMinutes: Count,
  contentPlays: Count,
});
export type AccountFigures = Static<typeof AccountFigures>;

/** Dimension, label, count: as the network names them. */
export const Demographics = Named('Demographics', Type.Record(Label, Counts));
export type Demographics = Static<typeof Demographics>;

/** The whole answer of a network about an account. */
export const AccountTold = Type.Object({
  ...AccountFigures.properties,
  demographics: Type.Optional(Nullable(Demographics)),
});

/** `YYYY-MM-DD`. */
export const LocalDate = Type.String({ pattern: '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$' });

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
