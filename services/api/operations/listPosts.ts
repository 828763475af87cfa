import type { NewestFirst } from '#projections/engine/rows.ts';
import { renderPostRow } from '#projections/models/posts.ts';
import { type PostFilters, listPosts as rowsOf } from '#projections/queries/post-queries.ts';
import { PostQuery, PostSummary } from '#schemas/http/post.ts';
import { withinLimit } from '../client-limits.ts';
import { listPage } from '../cursor.ts';
import { operation } from '../operation.ts';
import { filtersOf } from '../posts/body.ts';
import { postRowExample } from '../posts/examples.ts';

export const listPosts = operation({
  id: 'listPosts',
  method: 'GET',
  path: '/posts',
  tag: 'posts',
  summary: 'List posts',
  description: 'The newest first, without variants and targets: GET /posts/{id} has them.',
  scope: 'posts.read',
  idempotent: 'none',
  cost: 1,
  query: PostQuery,
  answer: PostSummary,
  list: true,
  codes: [],
  example: { data: postRowExample },
  handle: async (call) => {
    await call.behind(['posts']);
    const { limit: _limit, cursor: _cursor, status: statuses, platform: platforms, ...more } = call.query;
    const filters: PostFilters = { ...filtersOf({ ...more, statuses, platforms }), ...withinLimit(call.principal) };
    return listPage('listPosts', call, {
      rows: (page: { after: NewestFirst | null; limit: number }, knex) => rowsOf(knex, call.workspaceId, filters, page),
      keyOf: (row) => ({ createdAt: row.created_at, id: row.id }),
      show: renderPostRow,
    });
  },
});
