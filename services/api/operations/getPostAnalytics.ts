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
  summary: 'A post, by target',
  description:
    'Lifetime figures of the newest observation not after `to`, whenever the post went out. `metrics` of the post is what its targets tell together; what does not add up (permalink, averages, retention) is null there when several tell it.',
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
