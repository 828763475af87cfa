import { excerptsOf, getPublished } from '#projections/models/published.ts';
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
    'Lifetime figures, not gains: those of the newest observation not after `to`, whenever the post was published; `from` decides `asOf` alone. A figure is absent while it is not fetched yet, null where the network does not report it, and 0 where the network reported zero. A filter leaves out the targets that do not match. `metrics` of the post is the sum over its targets; a figure that cannot be summed (permalink, rates, averages, retention, breakdown of the audience) is null there when several targets have it.',
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
    const [rows, excerpts] = await Promise.all([
      readerOf(call).posts(workspaceId, wentOut([post]), window.to),
      excerptsOf(deps.knex, workspaceId, [post.id]),
    ]);
    return {
      data: { ...renderPostAnalytics(post, rows, excerpts, window), targets: renderTargetAnalytics(post, rows) },
    };
  },
});
