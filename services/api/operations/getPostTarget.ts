import { getTarget, renderTarget } from '#projections/targets.ts';
import { IdParams } from '#schemas/http/common.ts';
import { PostTarget } from '#schemas/http/post-target.ts';
import { operation } from '../operation.ts';
import { targetExample } from '../posts/examples.ts';
import { loadTarget } from '../posts/load.ts';
import { readRow } from '../rows.ts';

export const getPostTarget = operation({
  id: 'getPostTarget',
  method: 'GET',
  path: '/post-targets/{id}',
  tag: 'post target',
  summary: 'Get a post target',
  scope: 'posts.read',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: PostTarget,
  codes: [],
  example: { data: targetExample },
  handle: async (call) => {
    const find = (id: string) => getTarget(call.deps.knex, call.workspaceId, id);
    const { target, body } = await readRow(call, 'target', ['posts'], async (id) => {
      const found = await find(id);
      if (found !== null) return found;
      // A target that is planned and not written yet is written here: it is never 404.
      await loadTarget(call, id);
      await call.deps.caughtUp(call.positions, 2_000);
      return find(id);
    });
    return { data: renderTarget(target, body), revision: target.revision };
  },
});
