import { IdParams } from '#schemas/http/common.ts';
import { PostRecycle, Recycle } from '#schemas/http/post-recycle.ts';
import { operation } from '../operation.ts';
import { recycleExample } from '../posts/examples.ts';
import { setRecycle, shownRecycle } from '../posts/recycle.ts';

export const setPostRecycle = operation({
  id: 'setPostRecycle',
  method: 'PUT',
  path: '/posts/{id}/recycle',
  tag: 'posts',
  summary: 'Set recycle settings',
  description: [
    'Once the post is published, a copy of it goes out every `everyDays` days, as a new post that names it in `recycledFrom`. The days count from the publication of the post; each target is due at the wall-clock time that it had, in its own zone, also where the clocks change in between. On each account at least `everyDays` days less 12 hours lie between two publications: after a copy that went out late, the next one moves by whole days. A copy has the content of the post and goes to the same accounts, without the canceled targets and the disconnected accounts. It passes every check of POST /posts at its time, as if the caller of this operation posted it, and is held where an approval is required: by its clients then, by the role of the caller now, where the caller, or the owner of the key, has been removed or is a creator by then, and where a revise was approved for some of its accounts alone and another would get a new content by it. That a key has ended holds nothing.',
    'A copy is made an hour before it is due: from then on it is a post like any other, which can be revised, moved or deleted, and which stays when the recycling ends. Copies that were missed collapse into one, which goes out at once. A copy that still waits when the next one is made, because nobody has approved it or it was moved, is canceled with the reason `copy_replaced`, and its approval is withdrawn. Days that had passed before the call are not missed.',
    'The service makes no more copies once `times` or `until` is reached, the client is archived, no account is connected, or three copies in a row were refused or failed; `stoppedReason` says which. Setting it again starts anew. A draft, a canceled post and a copy are not recycled.',
  ].join('\n\n'),
  scope: 'posts.compose',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: PostRecycle,
  answer: Recycle,
  codes: ['validation_failed', 'post_not_scheduled', 'client_archived', 'stream_full'],
  example: { body: { everyDays: 30, times: 3 }, data: recycleExample },
  handle: async (call) => {
    const acted = await setRecycle(call);
    return { data: shownRecycle(call.params.id, acted), revision: acted.revision };
  },
});
