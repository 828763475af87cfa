import { instantsOf } from '#projections/analytics/instants.ts';
import type { PostFiguresRow, WentOut, Window } from '#projections/analytics/rollup.ts';
import {
  excerptsOf,
  getPublished,
  listPublished,
  type PublishedFirst,
  type PublishedPost,
} from '#projections/models/published.ts';
import { AnalyticsQuery, PostAnalytics, PostAnalyticsQuery, PostAnalyticsSummary } from '#schemas/http/analytics.ts';
import { IdParams } from '#schemas/http/common.ts';
import { listPage } from '../call/cursor.ts';
import { operation } from '../call/operation.ts';
import { readRow } from '../call/rows.ts';
import { combined } from './combine.ts';
import { analyticsTag, postAnalyticsExample, postAnalyticsRowExample } from './examples.ts';
import { publishedFilters, questionOf, readerOf } from './read.ts';
import { type SortedAfter, sortedPage } from './sorted.ts';

/** Posts with their figures, as an answer shows them. */

/** Posts with at least one published target among those shown. */
const wentOut = (posts: readonly PublishedPost[]): readonly WentOut[] =>
  posts.flatMap(({ id, published_at: first, last_published_at: last }) =>
    first === null || last === null ? [] : [{ id, first, last }],
  );

const freshest = (rows: readonly PostFiguresRow[]): string | null =>
  rows
    .map(({ fetchedAt }) => fetchedAt)
    .sort()
    .at(-1) ?? null;

/** Rows of the targets that are shown: a filter may have left some of a post's out. */
const shownRows = ({ targets }: PublishedPost, rows: readonly PostFiguresRow[]): readonly PostFiguresRow[] => {
  const shown = new Set(targets.map(({ id }) => id));
  return rows.filter(({ targetId }) => shown.has(targetId));
};

/** Where the post is on its network. Some networks name the address only beside the figures. */
const permalinkOf = (
  { id, permalink }: PublishedPost['targets'][number],
  rows: readonly PostFiguresRow[],
): string | null => permalink ?? rows.find(({ targetId }) => targetId === id)?.figures.permalink ?? null;

const renderPostAnalytics = (
  post: PublishedPost,
  all: readonly PostFiguresRow[],
  excerpts: ReadonlyMap<string, string>,
  window: Window,
) => {
  const rows = shownRows(post, all);
  const [only, ...others] = post.targets;
  const single = others.length === 0 ? only : undefined;
  return {
    object: 'post_analytics' as const,
    ...window,
    asOf: freshest(rows.filter(({ day }) => day >= window.from)),
    postId: post.id,
    clientId: post.client_id,
    accountId: single?.accountId ?? null,
    excerpt: excerpts.get(post.id) ?? '',
    permalink: single === undefined ? null : permalinkOf(single, rows),
    platforms: [...new Set(post.targets.map(({ platform }) => platform))],
    publishedAt: post.published_at,
    metrics: combined(rows),
    fetchedAt: freshest(rows),
  };
};

const renderTargetAnalytics = (post: PublishedPost, rows: readonly PostFiguresRow[]) =>
  post.targets.map((target) => {
    const { id, platform, clientId, accountId } = target;
    const row = rows.find(({ targetId }) => targetId === id);
    return {
      ...{ targetId: id, platform, clientId, accountId, permalink: permalinkOf(target, rows) },
      metrics: combined(row === undefined ? [] : [row]),
      fetchedAt: row?.fetchedAt ?? null,
    };
  });

export const getPostAnalytics = operation({
  id: 'getPostAnalytics',
  method: 'GET',
  path: '/analytics/posts/{id}',
  tag: analyticsTag,
  noun: 'post',
  summary: 'Figures of a post, by target',
  description:
    'Lifetime figures, not gains: those of the newest observation not after `to`, whenever the post was published; `from` decides `asOf` alone. A figure is absent while it is not fetched yet, null where the network does not report it, and 0 where the network reported zero. A filter leaves out the targets that do not match. `metrics` of the post is the sum over its targets; a figure that cannot be summed (permalink, rates, averages, retention, breakdown of the audience) is null there when several targets have it.',
  scope: 'analytics.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  query: AnalyticsQuery,
  answer: PostAnalytics,
  codes: [],
  example: { data: postAnalyticsExample },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const { window, filters } = await questionOf(call);
    const post = await readRow(call, 'post', ['posts'], (id) =>
      getPublished(deps.knex, workspaceId, id, publishedFilters(filters)),
    );
    const [rows, excerpts] = await Promise.all([
      readerOf(call).posts(workspaceId, wentOut([post]), window.to),
      excerptsOf(deps.knex, workspaceId, [post.id]),
    ]);
    return {
      data: { ...renderPostAnalytics(post, rows, excerpts, window), targets: renderTargetAnalytics(post, rows) },
    };
  },
});

export const listPostAnalytics = operation({
  id: 'listPostAnalytics',
  method: 'GET',
  path: '/analytics/posts',
  tag: analyticsTag,
  summary: 'Figures of the posts published in the window, newest first or by a figure',
  description:
    'Lifetime figures, not gains: those of the newest observation not after `to`. A figure is absent while it is not fetched yet, null where the network does not report it, and 0 where the network reported zero; a post without an observation has empty `metrics`. A filter leaves out the targets that do not match, and posts without a matching target. With `sort` the highest figure comes first and posts without that figure last. All pages use the observations from before the first page; a post with a further observation on the same day may be shown twice or left out. A page may be shorter than `limit`: `hasMore` says whether more follow.',
  scope: 'analytics.read',
  limited: 'one',
  idempotent: 'none',
  cost: 1,
  query: PostAnalyticsQuery,
  answer: PostAnalyticsSummary,
  list: true,
  codes: [],
  example: { data: postAnalyticsRowExample },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    await call.behind(['posts']);
    const question = await questionOf(call);
    const { window, filters, timezone } = question;
    const reader = readerOf(call);
    const besideOf = async (posts: readonly PublishedPost[], seenBy?: string) => {
      const ids = posts.map(({ id }) => id);
      const [figures, excerpts] = await Promise.all([
        reader.posts(workspaceId, wentOut(posts), window.to, seenBy),
        excerptsOf(deps.knex, workspaceId, ids),
      ]);
      const byPost = Map.groupBy(figures, ({ postId }) => postId);
      return (post: PublishedPost) => renderPostAnalytics(post, byPost.get(post.id) ?? [], excerpts, window);
    };
    const { sort } = call.query;
    if (sort !== undefined) {
      return listPage('listPostAnalytics', call, {
        rows: (page: { readonly after: SortedAfter | null; readonly limit: number }, knex) =>
          sortedPage({ reader, knex, workspaceId, question, sort, limit: page.limit }, page.after, call.now),
        keyOf: ({ after }) => after,
        beside: (rows) =>
          besideOf(
            rows.map(({ post }) => post),
            rows[0]?.after.seenBy,
          ),
        show: ({ post }, rendered) => rendered(post),
      });
    }
    return listPage('listPostAnalytics', call, {
      rows: (page: { readonly after: PublishedFirst | null; readonly limit: number }, knex) =>
        listPublished(knex, workspaceId, instantsOf(window, timezone), publishedFilters(filters), page),
      keyOf: (post) => ({ publishedAt: post.published_at ?? '', id: post.id }),
      beside: (rows) => besideOf(rows),
      show: (post, rendered) => rendered(post),
    });
  },
});
