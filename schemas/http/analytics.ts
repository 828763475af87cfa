import { type TProperties, type TSchema, Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import {
  AccountFigures,
  type CounterName,
  counters,
  Demographics,
  figureWords,
  LocalDate,
  PostFigures,
  unknownFigure,
} from '#schemas/insights.ts';
import { Excerpt } from '#schemas/post.ts';
import { ClosedEnum, Named, said } from '#schemas/published.ts';
import { Maybe, PlatformInput, paging, UuidInput } from './common.ts';

/**
 * Requests and answers of the analytics. In metrics, absent means "not fetched yet", null "the network does not report
 * it", 0 "the network reported 0". Totals and series are gains: null where no network reported the figure.
 */

/** The windows that a window may be compared with. */
export const comparisons = ['previous', 'previous_weekday'] as const;
export type Comparison = (typeof comparisons)[number];

const DateInput = (description: string, example: string) =>
  Type.String({
    format: 'date',
    expects: 'a day of the calendar, such as 2026-01-31',
    description: `${description} YYYY-MM-DD in the zone of the workspace, 2000-01-01 to 2100-12-31.`,
    examples: [example],
  });

/** An optional filter by networks. */
export const OnNetworks = (description: string) =>
  Maybe(Type.Array(PlatformInput, { minItems: 1, maxItems: 20, description, examples: [['instagram', 'x']] }));

const filters = {
  from: Maybe(DateInput('First day of the window. Default: 29 days before `to`.', '2026-01-01')),
  to: Maybe(
    DateInput(
      'Last day of the window, included. Default: today, in the sandbox by its clock. The window has at most 400 days.',
      '2026-01-31',
    ),
  ),
  platform: OnNetworks('Only accounts on this network, or on one of several with commas. Absent: on every network.'),
  clientId: Maybe(said(UuidInput, 'Only accounts of this client. Absent: of every client.')),
  socialAccountId: Maybe(said(UuidInput, 'Only this account. Absent: every account.')),
};

const compare = Maybe(
  said(
    ClosedEnum(
      'Comparison',
      comparisons,
      'Which days a window is compared with. previous: as many days right before it; previous_weekday: the window moved back by whole weeks, as few as leave the two without a common day, so that each day stands beside one of its weekday.',
    ),
    'Adds the member `previous`: the same figures for an earlier window. The value says for which one. Absent: no comparison.',
  ),
);

export const AnalyticsQuery = Type.Object(filters);
export const AccountAnalyticsQuery = Type.Object({ ...filters, compare });
export const BoardQuery = Type.Object({
  ...filters,
  compare,
  breakdown: Maybe(
    said(
      ClosedEnum('Breakdown', ['platform'], 'What the days are split by. platform: the days of each network.'),
      '`platform` adds `series`, the days of the network, to each entry of `byPlatform`. Absent: the entries have no days.',
    ),
  ),
});
export const PostAnalyticsQuery = Type.Object({
  ...paging,
  ...filters,
  sort: Maybe(
    said(
      ClosedEnum('PostAnalyticsSort', [...counters, 'engagementRate'], 'A figure by which posts are sorted.'),
      'Sorts by this figure, the highest first, and posts without it last. Absent: the newest post first.',
    ),
  ),
});

const rateWords =
  'Interactions divided by impressions: usually 0 to 1, and more where a post has more interactions than impressions. Interactions are the sum of likes, comments, shares, saves, reposts and quotes, or `totalInteractions` where a network reports none of these.';

/** A gain has no lower bound: a correction by a network may be negative. */
const Gain = (description: string) => Type.Optional(Nullable(Type.Integer({ description })));
const unknown = 'Null: no network reported it. Absent: not fetched yet.';
const gains = {
  ...(Object.fromEntries(counters.map((name) => [name, Gain(`${figureWords[name]} ${unknown}`)])) as Record<
    CounterName,
    ReturnType<typeof Gain>
  >),
  reach: Gain(
    'Never a number: a person who saw two posts counts once, and no network reports how many different people saw the posts of a window. Single posts have their reach. Null: it was fetched of posts. Absent: not fetched yet.',
  ),
  engagementRate: Nullable(
    Type.Number({
      description: `${rateWords} Made of the gains of those posts that report both. Null: none does, nobody saw them, or nothing was fetched yet.`,
    }),
  ),
};
const gainWords =
  'Each figure is a gain: what it grew by, added up over posts, and negative where a network corrected it downward. 0: the networks reported that nothing was gained. A counter is absent where none of the posts was asked for it.';

const OfDay = (description: string, example = '2026-01-31') =>
  said(LocalDate, `${description} YYYY-MM-DD, in the zone of the workspace.`, { examples: [example] });
const Day = {
  day: OfDay('The day.'),
  provisional: Type.Boolean({ description: 'Whether a later observation of a post may still change the day.' }),
};
const Followers = (description: string) => Nullable(Type.Integer({ minimum: 0, description }));

const from = OfDay('First day of the window.', '2026-01-01');
const to = OfDay('Last day of the window, included.');
const FreshestIn = (description: string) =>
  Nullable(Type.String({ format: 'date-time', description, examples: ['2026-02-01T02:14:09.000Z'] }));
const window = {
  from,
  to,
  asOf: FreshestIn(
    'When the freshest snapshot in the window was made, which is not the time of the call. Null: there is none.',
  ),
};
const days = <S extends TSchema>(items: S, description: string) =>
  Type.Array(items, {
    description: `${description} One entry for each day of the window, oldest first; a day without an observation has no counter, and its other figures are null.`,
  });

const Posts = Nullable(
  Type.Integer({
    minimum: 0,
    description:
      'Posts of which a target was published in the window; for a network, there. GET /analytics/posts lists a post in the window of its first target alone. Null: they could not be counted in time.',
  }),
);
const board = {
  ...gains,
  followerCount: Followers(
    'Followers by the last snapshot of each account in the window, up to the day; a person who follows two accounts counts twice. Null: no account was observed.',
  ),
};
const BoardDay = Named('BoardDay', Type.Object({ ...Day, ...board }, { description: `One day. ${gainWords}` }));
const shown = {
  totals: said(
    Named('BoardTotals', Type.Object({ ...board, posts: Posts }, { description: `A whole window. ${gainWords}` })),
    'Sums over the window.',
  ),
  byPlatform: Type.Array(
    Named(
      'PlatformBoard',
      Type.Object(
        {
          platform: said(Platform, 'The network that the figures are of.'),
          ...board,
          posts: Posts,
          series: Type.Optional(days(BoardDay, 'The days of the network. Absent without `breakdown=platform`.')),
        },
        { description: `A whole window on one network. ${gainWords}` },
      ),
    ),
    {
      description:
        'One entry for each network that has figures, followers or posts in the window, in the order of their names.',
    },
  ),
  series: days(BoardDay, 'The days.'),
};
const before = <P extends TProperties>(named: string, members: P) =>
  Type.Optional(
    said(
      Named(
        named,
        Type.Object(
          {
            from: OfDay('First day of the earlier window.', '2025-12-01'),
            to: OfDay('Last day of the earlier window, included.', '2025-12-31'),
            ...members,
          },
          { description: 'The window that is compared with, in the form of the first. Present with `compare`.' },
        ),
      ),
      'The earlier window that `compare` asked for. Absent without `compare`.',
    ),
  );

const rollup = {
  from,
  to,
  asOf: FreshestIn(
    'All figures are at least so fresh: of the accounts that are not disconnected, the oldest of their freshest snapshots in the window. Null: none was measured.',
  ),
  staleAccounts: Type.Integer({
    minimum: 0,
    description:
      'Accounts that are not disconnected and were not measured for over 36 hours before now or the end of the window.',
  }),
  ...shown,
  previous: before('PreviousBoard', shown),
};

const Kind = <const K extends string>(kind: K) => Type.Literal(kind, { description: 'The kind of resource.' });

export const WorkspaceAnalytics = Named(
  'WorkspaceAnalytics',
  Type.Object(
    { object: Kind('workspace_analytics'), ...rollup },
    { description: 'What the posts of a workspace gained in a window, and the followers of its accounts.' },
  ),
);

export const ClientAnalytics = Named(
  'ClientAnalytics',
  Type.Object(
    { object: Kind('client_analytics'), clientId: said(Uuid, 'The client of the path.'), ...rollup },
    { description: 'What the posts on a client’s accounts gained in a window, and the followers of these accounts.' },
  ),
);

const { followerCount: _snapshot, ...daily } = AccountFigures.properties;
const overDays = 'Null: the network reported it of no day. Absent: not fetched yet.';
const audience = {
  ...(Object.fromEntries(
    Object.entries(daily).map(([name, one]) => {
      const { description } = one as { readonly description?: string };
      return [name, said(one, `${description} ${overDays}`)];
    }),
  ) as typeof daily),
  accountsEngaged: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 0,
        description:
          'Different accounts that engaged with the account. Reported by instagram, of one day: of a window of several days null. Absent: not fetched yet.',
      }),
    ),
  ),
};

const ofAccount = {
  totals: said(
    Named(
      'AccountTotals',
      Type.Object(
        { ...gains, followerCount: Followers('Followers by the last snapshot in the window. Null: there is none.') },
        { description: `A whole window of one account. ${gainWords}` },
      ),
    ),
    'Sums over the posts of the account and over the window.',
  ),
  series: days(
    Named(
      'AccountDay',
      Type.Object(
        {
          ...Day,
          ...gains,
          followerCount: Followers('Followers by the last snapshot of the day. Null: there is none.'),
        },
        { description: `One day of one account. ${gainWords}` },
      ),
    ),
    'The days.',
  ),
  audience: said(
    Named(
      'AccountAudience',
      Type.Object(audience, {
        description:
          'Figures of the account itself, not of its posts: sums of the daily figures of its network, whose days are those of the network.',
      }),
    ),
    'Sums of the network’s daily figures over the window. Empty: none were fetched yet.',
  ),
};

export const AccountAnalytics = Named(
  'AccountAnalytics',
  Type.Object(
    {
      object: Kind('account_analytics'),
      socialAccountId: said(Uuid, 'The account of the path.'),
      platform: said(Platform, 'The network of the account.'),
      ...window,
      ...ofAccount,
      demographics: Type.Optional(
        said(
          Nullable(Demographics),
          'The newest snapshot not after `to`, also one from before the window; not a sum over it. Null: the network does not report them. Absent: not fetched yet.',
        ),
      ),
      previous: before('PreviousAccount', ofAccount),
    },
    { description: 'What the posts of one account gained in a window, its followers and its audience.' },
  ),
);

const Metrics = Named(
  'PostMetrics',
  Type.Object(
    {
      ...PostFigures.properties,
      reach: Type.Optional(
        Nullable(
          Type.Integer({
            minimum: 0,
            description: `${figureWords.reach} For a post on several networks or accounts, the sum: each of them counts a person once. ${unknownFigure}`,
          }),
        ),
      ),
      engagementRate: Type.Optional(
        Nullable(
          Type.Number({
            description: `${rateWords} For a post on several networks or accounts, of those that report both. Null: none does, or impressions are 0. Absent: not fetched yet.`,
          }),
        ),
      ),
      platformRemovedAt: Type.Optional(
        said(
          Nullable(Instant),
          'When its network was found to have it no more: its figures are final. For a post on several networks or accounts, when it was gone from the last of them. Null: it is still there. Absent: not fetched yet.',
        ),
      ),
    },
    {
      description:
        'Lifetime figures of a post: what its network had counted when it was last asked. A member that is absent was not fetched yet; null: the network does not report it; 0: the network reported zero. facebook reports nothing for stories.',
    },
  ),
);

const FetchedAt = Nullable(
  Type.String({
    format: 'date-time',
    description: 'When the newest of `metrics` was fetched, also before the window. Null: not fetched yet.',
    examples: ['2026-02-01T02:14:09.000Z'],
  }),
);

const Permalink = (description: string) =>
  Nullable(Type.String({ description, examples: ['https://www.instagram.com/p/C3xYz1aBcDe/'] }));

const post = {
  object: Kind('post_analytics'),
  ...window,
  postId: said(Uuid, 'The post.'),
  clientId: said(Uuid, 'The client of the post.'),
  accountId: said(
    Nullable(Uuid),
    'The account that it is on. Null: it is on several that fit the filters, or on none. GET /analytics/posts/{id} has each.',
  ),
  excerpt: Excerpt,
  permalink: Permalink(
    'Its address on the network. Null: the network gave none, or it is on several accounts that fit the filters.',
  ),
  platforms: Type.Array(Platform, {
    description: 'Networks where it was published, of those that fit the filters; each once.',
  }),
  publishedAt: said(Nullable(Instant), 'When its first target was published. Null: none was.'),
  metrics: said(
    Metrics,
    'Sums over its published targets that fit the filters. Empty: not fetched yet. A figure that cannot be added up (permalink, rates, averages, retention, breakdown of the audience) is null where several targets have it.',
  ),
  fetchedAt: FetchedAt,
};

export const PostAnalyticsSummary = Named(
  'PostAnalyticsSummary',
  Type.Object(post, { description: 'The figures of a post as a row of a list: without those of its targets.' }),
);

export const PostAnalytics = Named(
  'PostAnalytics',
  Type.Object(
    {
      ...post,
      targets: Type.Array(
        Named(
          'PostTargetAnalytics',
          Type.Object(
            {
              targetId: said(Uuid, 'The target.'),
              platform: said(Platform, 'The network of its account.'),
              clientId: said(Uuid, 'The client of its account.'),
              accountId: said(Uuid, 'The account that it is on.'),
              permalink: Permalink('Its address on the network. Null: the network gave none.'),
              metrics: said(Metrics, 'Its own figures. Empty: not fetched yet.'),
              fetchedAt: FetchedAt,
            },
            { description: 'The figures of one published target of a post.' },
          ),
        ),
        { description: 'Its published targets that fit the filters. Empty: none was published.' },
      ),
    },
    { description: 'The figures of a post, and those of each of its targets.' },
  ),
);
