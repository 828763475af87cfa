import { post } from '#domain/post/post.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Post } from '#schemas/http/post.ts';
import { withLiveCampaign } from '../campaigns/check.ts';
import { operation } from '../operation.ts';
import { answerWithTargets } from '../posts/answers.ts';
import { withDecision } from '../posts/decisions.ts';
import { deletePost as remove } from '../posts/delete.ts';
import { postDataExample, targetExample } from '../posts/examples.ts';

export const deletePost = operation({
  id: 'deletePost',
  method: 'DELETE',
  path: '/posts/{id}',
  tag: 'posts',
  summary: 'Discard a draft, or cancel a scheduled post',
  description:
    'A draft is gone: the answer shows it as `discarded`, every other operation then answers 404, and deleting it again answers the same. Of a scheduled post, every target that can still be canceled is canceled; targets that are published, failed or on their way stay as they are, and so does the post. One that the network’s own scheduler has, or that is being handed over to it, has `undo: pending` until the network has deleted it, as after a cancel of the target. The answer and the reads after it show what became of the post. The call is refused where no target can be canceled. Deleting a canceled post again answers the same.',
  scope: 'posts.compose',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Post,
  codes: ['target_not_pending'],
  example: {
    data: {
      ...postDataExample,
      status: 'canceled',
      revision: 3,
      counts: { total: 1, canceled: 1 },
      targets: [{ ...targetExample, status: 'canceled', revision: 1 }],
    },
  },
  handle: async (call) => {
    const { events, targetEvents, revision } = await remove(call);
    const answer = await withLiveCampaign(call, answerWithTargets(events, targetEvents));
    return { data: await withDecision(call, answer, { state: foldEvents(post, events), events }), revision };
  },
});
