import { renderTarget } from '#projections/models/targets.ts';
import { getTarget } from '#projections/queries/target-queries.ts';
import { IdParams } from '#schemas/http/common.ts';
import { PostTarget } from '#schemas/http/post-target.ts';
import { operation } from '../operation.ts';
import { targetExample } from '../posts/examples.ts';
import { readPlannedTarget } from '../posts/load.ts';
import { readRow } from '../rows.ts';

export const getPostTarget = operation({
  id: 'getPostTarget',
  method: 'GET',
  path: '/post-targets/{id}',
  tag: 'post-targets',
  summary: 'Get a post target',
  description: 'A target that its post has planned and that is not stored yet is answered from the plan, without ETag.',
  scope: 'posts.read',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: PostTarget,
  codes: [],
  example: { data: targetExample },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const planned = (id: string) => readPlannedTarget(call, id);
    const found = await readRow(call, 'target', ['posts'], (id) => getTarget(deps.knex, workspaceId, id), planned);
    const data = renderTarget(found.target, found.body);
    return 'planned' in found ? { data } : { data, revision: data.revision };
  },
});
