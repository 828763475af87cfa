import { type Static, Type } from 'typebox';
import type {
  WorkspaceAnalytics as BoardSchema,
  PostAnalytics as PostSchema,
  PostAnalyticsSummary as RowSchema,
} from '#schemas/http/analytics.ts';
import { counters } from '#schemas/insights.ts';
import { reads, tool } from '../tool.ts';
import {
  Args,
  Bare,
  Id,
  joined,
  Maybe,
  Mode,
  many,
  moreOf,
  Next,
  NextCursor,
  Nullable,
  Platforms,
  pageOf,
  plainPaging,
} from '../words.ts';
import {
  asOfWords,
  Figures,
  type FiguresOut,
  figureLine,
  figuresOf,
  usualFigures,
  zoneOf,
  zoneWords,
} from './figures.ts';

/** Questions about figures, with the window, its time zone and the age of the figures said back. */

type Board = Static<typeof BoardSchema>;
type OnePost = Static<typeof PostSchema>;
type Row = Static<typeof RowSchema>;

const Day = (description: string) => Type.String({ format: 'date', description });

const window = {
  from: Maybe(Day('First day, in the zone of the workspace. Default: 29 days before the last.')),
  to: Maybe(Day('Last day, included. Default: today. At most 400 days in all.')),
};
const Window = Type.Object({
  from: Type.String(),
  to: Type.String(),
  timezone: Nullable(Type.String(), 'Null: that of the workspace.'),
  asOf: Nullable(Type.String(), 'How fresh the figures are.'),
});

const totalsOf = (totals: Readonly<Record<string, unknown>>): FiguresOut =>
  figuresOf(totals, [...usualFigures, 'followerCount', ...('posts' in totals ? ['posts'] : [])]);

/** Accounts have no split by network, and no number of stale accounts. */
type Found = Pick<Board, 'from' | 'to' | 'asOf' | 'totals'> &
  Partial<Pick<Board, 'byPlatform' | 'staleAccounts' | 'previous'>>;

export const analyticsSummary = tool({
  name: 'analytics_summary',
  title: 'Figures of a window',
  description:
    'What all posts gained in a window of days: of the workspace, of one client or of one account, in total and by network, beside an earlier window if asked. Say the window and how fresh it is when you report it. What is “not reported” or “not fetched yet” is unknown: never call it zero. Reach exists for single posts only.',
  scopes: ['analytics.read'],
  hints: reads,
  input: Args({
    clientId: Maybe(Id()),
    accountId: Maybe(Id('Only this account.')),
    platforms: Maybe(Platforms()),
    ...window,
    compare: Maybe(
      Type.Enum(['previous', 'previous_weekday'], {
        description: 'previous: the window right before; previous_weekday: moved by whole weeks.',
      }),
    ),
  }),
  output: Type.Object({
    mode: Mode,
    window: Window,
    totals: Figures,
    byPlatform: Type.Array(Type.Object({ platform: Type.String(), figures: Figures })),
    previous: Nullable(Type.Object({ from: Type.String(), to: Type.String(), totals: Figures })),
    staleAccounts: Nullable(Type.Integer(), 'Accounts that were not measured for 36 hours.'),
    nextStep: Next,
  }),
  run: async (call, { clientId, accountId, platforms, from, to, compare }) => {
    // A key for one client means that client: the figures of the whole workspace are refused to it.
    const [only, ...others] = call.clientIds ?? [];
    const client = clientId ?? (others.length === 0 ? only : undefined);
    const query = { from, to, compare, platform: platforms };
    const ask = () => {
      if (accountId !== undefined) {
        return call.invoke<Found>('getAccountAnalytics', { params: { id: accountId }, query: { ...query, clientId } });
      }
      if (client !== undefined) return call.invoke<Found>('getClientAnalytics', { params: { id: client }, query });
      return call.invoke<Found>('getAnalyticsOverview', { query });
    };
    const { data: found } = await ask();
    const timezone = await zoneOf(call);
    const totals = totalsOf(found.totals);
    const byPlatform = (found.byPlatform ?? []).map(({ platform, ...figures }) => ({
      platform,
      figures: totalsOf(figures),
    }));
    const { previous: before } = found;
    const previous =
      before === undefined ? null : { from: before.from, to: before.to, totals: totalsOf(before.totals) };
    const staleAccounts = found.staleAccounts ?? null;
    const nextStep = 'post_performance shows which posts did best in the same window.';
    const text = joined(
      `From ${found.from} to ${found.to} in ${zoneWords(timezone)} (${call.mode}). ${asOfWords(found.asOf)}.`,
      `Gained in all: ${figureLine(totals)}`,
      ...byPlatform.map(({ platform, figures }) => `- ${platform}: ${figureLine(figures)}`),
      previous === null ? null : `From ${previous.from} to ${previous.to}: ${figureLine(previous.totals)}`,
      staleAccounts === null || staleAccounts === 0
        ? null
        : `${many(staleAccounts, 'account')} not measured for 36 hours: the figures may be too low.`,
      nextStep,
    );
    const { from: first, to: last, asOf } = found;
    const data = { mode: call.mode, window: { from: first, to: last, timezone, asOf }, totals, byPlatform };
    return { text, data: { ...data, previous, staleAccounts, nextStep } };
  },
});

const ofPost = [...usualFigures, 'reach'] as const;

const Performance = Type.Object({
  postId: Type.String(),
  platforms: Type.Array(Type.String()),
  publishedAt: Nullable(Type.String()),
  fetchedAt: Nullable(Type.String(), 'When the newest figure was fetched.'),
  figures: Figures,
});

const performanceOf = ({ postId, platforms, publishedAt, fetchedAt, metrics }: Row) => ({
  ...{ postId, platforms, publishedAt, fetchedAt },
  figures: figuresOf(metrics, ofPost),
});

export const postPerformance = tool({
  name: 'post_performance',
  title: 'Figures of posts',
  description:
    'Lifetime figures of single posts: of one post with its targets (postId), or of the posts published in a window, the best first by the figure in sort. What is “not reported” or “not fetched yet” is unknown: never call it zero.',
  scopes: ['analytics.read'],
  hints: reads,
  input: Args({
    postId: Maybe(Id('Only this post, with its targets.')),
    clientId: Maybe(Id('Only posts on accounts of this client.')),
    platforms: Maybe(Platforms('Only on these networks.')),
    ...Bare(window),
    sort: Maybe(
      Type.Enum([...counters, 'engagementRate'], {
        description: 'The figure to sort by, the highest first. Absent: the newest post first.',
      }),
    ),
    ...plainPaging,
  }),
  output: Type.Object({
    mode: Mode,
    window: Nullable(Window),
    posts: Type.Array(Performance),
    targets: Type.Array(
      Type.Object({
        targetId: Type.String(),
        platform: Type.String(),
        fetchedAt: Nullable(Type.String()),
        figures: Figures,
      }),
      { description: 'Of one post: those that are out.' },
    ),
    nextCursor: NextCursor,
    nextStep: Next,
  }),
  run: async (call, { postId, clientId, platforms, from, to, sort, ...page }) => {
    const query = { clientId, platform: platforms, from, to };
    const timezone = await zoneOf(call);
    const one =
      postId === undefined ? null : await call.invoke<OnePost>('getPostAnalytics', { params: { id: postId }, query });
    const list =
      one === null
        ? await call.invoke<Row[]>('listPostAnalytics', { query: { ...query, sort, ...pageOf(page) } })
        : null;
    const rows: readonly Row[] = one === null ? (list?.data ?? []) : [one.data];
    const posts = rows.map(performanceOf);
    const targets = call.cuts
      .rows('targets', one?.data.targets ?? [], 25)
      .map(({ targetId, platform, fetchedAt, metrics }) => ({
        ...{ targetId, platform, fetchedAt },
        figures: figuresOf(metrics, ofPost),
      }));
    const [first] = rows;
    const seen = first === undefined ? null : { from: first.from, to: first.to, timezone, asOf: first.asOf };
    const nextCursor = list?.page?.nextCursor ?? null;
    const nextStep =
      posts.length === 0
        ? 'No post fits: widen the window.'
        : 'post_status tells where a post is out; find_posts has its text.';
    const text = joined(
      seen === null
        ? `No post in the window (${call.mode}).`
        : `${many(posts.length, 'post')}, window ${seen.from} to ${seen.to} in ${zoneWords(timezone)} (${call.mode}).`,
      ...posts.map(
        (post) =>
          `- ${post.postId} (${post.platforms.join(', ')}), ${post.fetchedAt === null ? 'not measured yet' : `as of ${post.fetchedAt}`}: ${figureLine(post.figures)}`,
      ),
      ...targets.map(
        ({ targetId, platform, figures }) => `  - ${platform} (targetId ${targetId}): ${figureLine(figures)}`,
      ),
      moreOf(nextCursor),
      nextStep,
    );
    return { text, data: { mode: call.mode, window: seen, posts, targets, nextCursor, nextStep } };
  },
});
