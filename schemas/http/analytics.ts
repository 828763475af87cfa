import { type TSchema, Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { AccountFigures, type CounterName, counters, Demographics, LocalDate, PostFigures } from '#schemas/insights.ts';
import { Maybe, PlatformInput, paging } from './common.ts';

/**
 * Requests and answers of the analytics. In metrics, absent means "not fetched yet", null "the network does not report
 * it", 0 "the network reported 0". Totals and series are gains: null where no network reported the figure or no
 * observation was made.
 */

const DateInput = (description: string) =>
  Type.String({
    format: 'date',
    description: `${description} YYYY-MM-DD, in the workspace’s zone.`,
    expects: 'a day of the calendar, such as 2026-01-31',
  });

/** The windows that a window may be compared with. */
export const comparisons = ['previous', 'previous_weekday'] as const;
export type Comparison = (typeof comparisons)[number];

const filters = {
  from: Maybe(DateInput('First day. Default: 29 days before `to`.')),
  to: Maybe(DateInput('Last day, included. Default: today. At most 400 days with `from`.')),
  platform: Maybe(
    Type.Array(PlatformInput, { minItems: 1, maxItems: 20, description: 'One, or several with commas.' }),
  ),
  clientId: Maybe(Uuid),
  socialAccountId: Maybe(Uuid),
};

const compare = Maybe(
  Type.Enum([...comparisons], {
    description:
      '`previous`: beside the window, as many days right before it. `previous_weekday`: the same, moved back by whole weeks, so that each day stands beside one of its weekday.',
  }),
);

export const AnalyticsQuery = Type.Object(filters);
export const AccountAnalyticsQuery = Type.Object({ ...filters, compare });
export const BoardQuery = Type.Object({
  ...filters,
  compare,
  breakdown: Maybe(Type.Enum(['platform'], { description: '`platform`: includes the days of each network.' })),
});
export const PostAnalyticsQuery = Type.Object({
  ...paging,
  ...filters,
  sort: Maybe(
    Type.Enum([...counters, 'engagementRate'], {
      description: 'Sorts by this figure, the highest first. Default: the newest post first.',
    }),
  ),
});

const EngagementRate = Nullable(
  Type.Number({ description: 'Interactions divided by impressions, over posts that report both: usually 0 to 1.' }),
);
/** What each counter counts, and its unit. */
const counted = {
  impressions: 'Times shown, repeated views included.',
  reach: 'Different people who saw a post.',
  likes: 'Reactions of every kind.',
  comments: 'Comments; on threads and x, replies.',
  shares: 'Times shared onward.',
  saves: 'Times saved.',
  clicks: 'Clicks that made no story of their own.',
  follows: 'Follows that the posts caused.',
  profileVisits: 'Times the profile was opened after a post was seen.',
  linkClicks: 'Taps on a link.',
  totalInteractions: 'Interactions, as the network adds them up.',
  reposts: 'Reposts without words of their own.',
  quotes: 'Reposts with words of their own.',
  videoViews: 'Plays of at least three seconds, or what the network calls a view of a video.',
  videoCompletions: 'Plays to the end, or of 30 seconds.',
  watchTimeMinutes: 'Minutes watched.',
  subscribersGained: 'Subscribers gained.',
  subscribersLost: 'Subscribers lost.',
} as const satisfies Record<CounterName, string>;

const Gain = (description: string) => Nullable(Type.Integer({ description }));
const gains = {
  ...(Object.fromEntries(counters.map((name) => [name, Gain(counted[name])])) as Record<
    CounterName,
    ReturnType<typeof Gain>
  >),
  reach: Gain(
    `${counted.reach} Always null: a person who saw two posts counts once, and no network reports how many different people saw the posts of a window. Single posts have their reach.`,
  ),
  engagementRate: EngagementRate,
};
const Day = {
  day: LocalDate,
  provisional: Type.Boolean({ description: 'A later observation of a post may still change the day.' }),
};
const FollowerCount = Nullable(Type.Integer({ minimum: 0, description: 'The last snapshot in the period.' }));

const window = {
  from: LocalDate,
  to: LocalDate,
  asOf: Nullable(Type.String({ format: 'date-time', description: 'Freshest snapshot in the window; null: none.' })),
};
const days = <S extends TSchema>(items: S) =>
  Type.Array(items, { description: 'One entry for each day; a day without an observation is null in every member.' });

const Followers = Nullable(
  Type.Integer({
    minimum: 0,
    description:
      'Followers by the last snapshot of each account in the window, up to the day; a person who follows two accounts counts twice. Null: no account was observed.',
  }),
);
const Posts = Nullable(
  Type.Integer({
    minimum: 0,
    description:
      'Posts published in the window; for a network, those published there. Null: they could not be counted in time.',
  }),
);
const board = { ...gains, followerCount: Followers };
const boardDays = days(Type.Object({ ...Day, ...board }));
const shown = {
  totals: Type.Object({ ...board, posts: Posts }),
  byPlatform: Type.Array(
    Type.Object(
      { platform: Platform, ...board, posts: Posts, series: Type.Optional(boardDays) },
      {
        description: '`series` is present with `breakdown=platform`.',
      },
    ),
  ),
  series: boardDays,
};
const before = (members: Parameters<typeof Type.Object>[0]) =>
  Type.Optional(
    Type.Object(
      { from: LocalDate, to: LocalDate, ...members },
      {
        description: 'The window of comparison, in the same form. Present with `compare`.',
      },
    ),
  );

const rollup = {
  from: LocalDate,
  to: LocalDate,
  asOf: Nullable(
    Type.String({
      format: 'date-time',
      description:
        'All figures are at least so fresh: of the accounts that are not disconnected, the oldest of their freshest snapshots in the window. Null: none was measured.',
    }),
  ),
  staleAccounts: Type.Integer({
    minimum: 0,
    description:
      'Accounts that are not disconnected and were not measured for over 36 hours before now or the end of the window.',
  }),
  ...shown,
  previous: before(shown),
};

export const WorkspaceAnalytics = Type.Object({ object: Type.Literal('workspace_analytics'), ...rollup });

export const ClientAnalytics = Type.Object({ object: Type.Literal('client_analytics'), clientId: Uuid, ...rollup });

const { followerCount: _snapshot, ...daily } = AccountFigures.properties;
const audience = {
  ...daily,
  accountsEngaged: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 0,
        description:
          'Different accounts that engaged. Networks tell them of one day: of a window of several days null.',
      }),
    ),
  ),
};

const ofAccount = {
  totals: Type.Object({ ...gains, followerCount: FollowerCount }),
  series: days(Type.Object({ ...Day, ...gains, followerCount: FollowerCount })),
  audience: Type.Object(audience, { description: 'Sums over the window of the daily figures of the network.' }),
};

export const AccountAnalytics = Type.Object({
  object: Type.Literal('account_analytics'),
  socialAccountId: Uuid,
  platform: Platform,
  ...window,
  ...ofAccount,
  demographics: Type.Optional(Nullable(Demographics)),
  previous: before(ofAccount),
});

const Metrics = Type.Object({
  ...PostFigures.properties,
  reach: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 0,
        description: `${counted.reach} For a post on several networks or accounts, the sum: each of them counts a person once.`,
      }),
    ),
  ),
  engagementRate: Type.Optional(EngagementRate),
  platformRemovedAt: Type.Optional(Nullable(Instant)),
});

const FetchedAt = Nullable(Type.String({ format: 'date-time', description: 'Null: not fetched yet.' }));

const post = {
  object: Type.Literal('post_analytics'),
  ...window,
  postId: Uuid,
  platforms: Type.Array(Platform, { description: 'Networks where it was published.' }),
  publishedAt: Nullable(Instant),
  metrics: Metrics,
  fetchedAt: FetchedAt,
};

export const PostAnalyticsRow = Type.Object(post);

export const PostAnalytics = Type.Object({
  ...post,
  targets: Type.Array(Type.Object({ targetId: Uuid, platform: Platform, metrics: Metrics, fetchedAt: FetchedAt })),
});

export const BestTimesQuery = Type.Object({ platform: filters.platform, clientId: filters.clientId });

export const BestTime = Type.Object({
  object: Type.Literal('best_time'),
  weekday: Type.Integer({ minimum: 1, maximum: 7, description: '1 = Monday.' }),
  hour: Type.Integer({ minimum: 0, maximum: 23 }),
  timezone: Type.String({ description: 'The client’s, else the workspace’s.' }),
  score: Type.Number({ minimum: 0, maximum: 1, description: '0.5 is an average time.' }),
  lift: Type.Number({ minimum: 0, description: 'Expected engagement as a multiple of the usual.' }),
  sampleSize: Type.Integer({
    minimum: 0,
    description: 'Posts of the last 90 days in exactly this slot, at least a week old.',
  }),
  basis: Type.Enum(['observed', 'prior'], {
    description: 'prior: no post of this slot was observed; estimated from its hour, its weekday and the network.',
  }),
});
