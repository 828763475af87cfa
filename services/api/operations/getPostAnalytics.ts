import { getPublished } from '#projections/published.ts';
import { AnalyticsQuery, PostAnalytics } from '#schemas/http/analytics.ts';
import { IdParams } from '#schemas/http/common.ts';
import { postAnalyticsExample } from '../analytics/examples.ts';
import { renderPostAnalytics, renderTargetAnalytics, wentOut } from '../analytics/posts.ts';
import { publishedFilters, questionOf, readerOf } from '../analytics/read.ts';
import { operation } from '../operation.ts';
import { readRow } from '../rows.ts';

export const getPostAnalytics = operation({
  id: 'getPostAnalytics',
  method: 'GET',
  path: '/analytics/posts/{id}',
  tag: 'analytics',
  noun: 'post',
  summary: 'Figures of a post, by target',
  description:
    'Lifetime figures of the newest observation not after `to`, whenever the post was published. `metrics` of the post is the sum over its targets. A figure that cannot be summed (permalink, averages, retention) is null there when several targets have it.',
  scope: 'analytics.read',
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
    const rows = await readerOf(call).posts(workspaceId, wentOut([post]), window.to);
    return { data: { ...renderPostAnalytics(post, rows, window), targets: renderTargetAnalytics(post, rows) } };
  },
});
