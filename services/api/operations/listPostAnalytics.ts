import { instantsOf } from '#projections/analytics/instants.ts';
import { excerptsOf, listPublished, type PublishedFirst, type PublishedPost } from '#projections/models/published.ts';
import { PostAnalyticsQuery, PostAnalyticsSummary } from '#schemas/http/analytics.ts';
import { postAnalyticsRowExample } from '../analytics/examples.ts';
import { renderPostAnalytics, wentOut } from '../analytics/posts.ts';
import { publishedFilters, questionOf, readerOf } from '../analytics/read.ts';
import { type SortedAfter, sortedPage } from '../analytics/sorted.ts';
import { listPage } from '../cursor.ts';
import { operation } from '../operation.ts';

export const listPostAnalytics = operation({
  id: 'listPostAnalytics',
  method: 'GET',
  path: '/analytics/posts',
  tag: 'analytics',
  summary: 'Figures of the posts published in the window, newest first or by a figure',
  description:
    'Lifetime figures, not gains: those of the newest observation not after `to`. A figure is absent while it is not fetched yet, null where the network does not report it, and 0 where the network reported zero; a post without an observation has empty `metrics`. A filter leaves out the targets that do not match, and posts without a matching target. With `sort` the highest figure comes first and posts without that figure last. All pages use the observations from before the first page; a post with a further observation on the same day may be shown twice or left out. A page may be shorter than `limit`: `hasMore` says whether more follow.',
  scope: 'analytics.read',
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
