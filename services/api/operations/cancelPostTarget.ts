import { IdParams } from '#schemas/http/common.ts';
import { PostTarget } from '#schemas/http/post-target.ts';
import { operation } from '../operation.ts';
import { targetExample } from '../posts/examples.ts';
import { actOnTarget } from '../posts/target-action.ts';
import { canceling } from '../posts/target-actions.ts';

export const cancelPostTarget = operation({
  id: 'cancelPostTarget',
  method: 'POST',
  path: '/post-targets/{id}/cancel',
  tag: 'post-targets',
  summary: 'Cancel a target that is not published yet',
  description:
    'A target that is canceled already is answered unchanged. If the publisher takes the target at the same moment, either outcome is possible: the answer, and later the target, say which. A target that the network’s own scheduler has (`handed_to_platform`) is first deleted there: the answer says `undo: pending`, and later the target is canceled with `undo: done`, or published with `undo: failed` where the network was faster. So is one that is being handed over to that scheduler (`publishing`), or whose hand-over has no known outcome yet (`outcome_unknown`): the network deletes it once it is known to have it. Less than a minute before its time: 409 `target_not_pending`.',
  scope: 'posts.compose',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: PostTarget,
  codes: ['idempotency_key_reused', 'target_not_pending'],
  example: { data: { ...targetExample, status: 'canceled', revision: 1 } },
  handle: (call) => actOnTarget(call, canceling),
});
