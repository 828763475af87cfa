import { listPublished, type PublishedFirst } from '#projections/published.ts';
import { PostAnalyticsQuery, PostAnalyticsRow } from '#schemas/http/analytics.ts';
import { postAnalyticsRowExample } from '../analytics/examples.ts';
import { renderPostAnalytics, wentOut } from '../analytics/posts.ts';
import { publishedFilters, questionOf, readerOf } from '../analytics/read.ts';
import { instantsOf } from '../analytics/window.ts';
import { listPage } from '../cursor.ts';
import { operation } from '../operation.ts';

export const listPostAnalytics = operation({
  id: 'listPostAnalytics',
  method: 'GET',
  path: '/analytics/posts',
  tag: 'analytics',
  summary: 'Posts that went out in the window, the newest first',
  description:
    'Lifetime figures of the newest observation not after `to`. A filter leaves out targets that it does not fit, and posts that have none left. A post that nobody has looked at yet is there with empty `metrics`.',
  scope: 'analytics.read',
  idempotent: 'none',
  cost: 1,
  query: PostAnalyticsQuery,
  answer: PostAnalyticsRow,
  list: true,
  codes: [],
  example: { data: postAnalyticsRowExample },
  handle: async (call) => {
    const { workspaceId } = call;
    await call.behind(['posts']);
    const { window, filters, timezone } = await questionOf(call);
    const reader = readerOf(call);
    return listPage('listPostAnalytics', call, {
      rows: (page: { readonly after: PublishedFirst | null; readonly limit: number }, knex) =>
        listPublished(knex, workspaceId, instantsOf(window, timezone), publishedFilters(filters), page),
      keyOf: (post) => ({ publishedAt: post.published_at ?? '', id: post.id }),
      beside: async (rows) =>
        Map.groupBy(await reader.posts(workspaceId, wentOut(rows), window.to), ({ postId }) => postId),
      show: (post, figures) => renderPostAnalytics(post, figures.get(post.id) ?? [], window),
    });
  },
});
