import { renderTarget } from '#projections/models/targets.ts';
import { type DueFirst, listTargets, type TargetFilters } from '#projections/queries/target-queries.ts';
import { PostTarget, PostTargetQuery } from '#schemas/http/post-target.ts';
import { withinLimit } from '../client-limits.ts';
import { listPage } from '../cursor.ts';
import { operation } from '../operation.ts';
import { filtersOf } from '../posts/body.ts';
import { targetExample } from '../posts/examples.ts';

export const listPostTargets = operation({
  id: 'listPostTargets',
  method: 'GET',
  path: '/post-targets',
  tag: 'post-targets',
  summary: 'List post targets',
  description:
    'The targets of all posts, sorted by due instant, the earliest first. With `status=outcome_unknown`: those of which a network has not said whether it published them.',
  scope: 'posts.read',
  idempotent: 'none',
  cost: 1,
  query: PostTargetQuery,
  answer: PostTarget,
  list: true,
  codes: [],
  example: { data: targetExample },
  handle: async (call) => {
    await call.behind(['posts']);
    const { limit: _limit, cursor: _cursor, status: statuses, platform: platforms, ...more } = call.query;
    const filters: TargetFilters = { ...filtersOf({ ...more, statuses, platforms }), ...withinLimit(call.principal) };
    return listPage('listPostTargets', call, {
      rows: (page: { after: DueFirst | null; limit: number }, knex) =>
        listTargets(knex, call.workspaceId, filters, page),
      keyOf: ({ target }) => ({ scheduledAt: target.due_at, id: target.id }),
      show: ({ target, body }) => renderTarget(target, body),
    });
  },
});
