import { IdParams } from '#schemas/http/common.ts';
import { Recycle } from '#schemas/http/post-recycle.ts';
import { operation } from '../operation.ts';
import { clearedRecycleExample } from '../posts/examples.ts';
import { clearRecycle, shownRecycle } from '../posts/recycle.ts';

export const clearPostRecycle = operation({
  id: 'clearPostRecycle',
  method: 'DELETE',
  path: '/posts/{id}/recycle',
  tag: 'posts',
  summary: 'Clear recycle settings',
  description:
    'No more copies are made; those that exist stay, also one that is not due yet. The answer shows the cleared settings; clearing them again answers the same.',
  scope: 'posts.compose',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Recycle,
  codes: [],
  example: { data: clearedRecycleExample },
  handle: async (call) => {
    const acted = await clearRecycle(call);
    return { data: shownRecycle(call.params.id, acted), revision: acted.revision };
  },
});
