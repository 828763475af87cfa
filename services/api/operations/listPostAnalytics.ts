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
    const { deps, workspaceId } = call;
    await call.behind(['posts']);
    const { window, filters, timezone } = await questionOf(call);
    const reader = readerOf(call);
    return listPage('listPostAnalytics', call, {
      rows: async (page: { readonly after: PublishedFirst | null; readonly limit: number }) => {
        const range = instantsOf(window, timezone);
        const found = await listPublished(deps.knex, workspaceId, range, publishedFilters(filters), page);
        const figures = await reader.posts(workspaceId, wentOut(found.rows), window.to);
        const byPost = Map.groupBy(figures, ({ postId }) => postId);
        const rows = found.rows.map((post) => ({ post, figures: byPost.get(post.id) ?? [] }));
        return { rows, hasMore: found.hasMore };
      },
      keyOf: ({ post }) => ({ publishedAt: post.published_at ?? '', id: post.id }),
      show: ({ post, figures }) => renderPostAnalytics(post, figures, window),
    });
  },
});
