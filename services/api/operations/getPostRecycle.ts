import { getRecycled, renderRecycle } from '#projections/models/post-recycles.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Recycle } from '#schemas/http/post-recycle.ts';
import { operation } from '../operation.ts';
import { recycleExample } from '../posts/examples.ts';
import { notFound } from '../refusal.ts';
import { readRow } from '../rows.ts';

export const getPostRecycle = operation({
  id: 'getPostRecycle',
  method: 'GET',
  path: '/posts/{id}/recycle',
  tag: 'posts',
  summary: 'Get recycle settings',
  description: 'Of a post that nobody recycles, `enabled` is false and `everyDays` is null.',
  scope: 'posts.read',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Recycle,
  codes: [],
  example: { data: recycleExample },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const row = await readRow(call, 'post', ['posts'], (id) => getRecycled(deps.knex, workspaceId, id));
    if (row.status === 'discarded') throw notFound('post');
    return { data: renderRecycle(row), revision: row.revision };
  },
});
