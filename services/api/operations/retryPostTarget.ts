import { IdParams } from '#schemas/http/common.ts';
import { PostTarget } from '#schemas/http/post-target.ts';
import { operation } from '../operation.ts';
import { targetExample } from '../posts/examples.ts';
import { actOnTarget } from '../posts/target-action.ts';
import { retrying } from '../posts/target-actions.ts';

export const retryPostTarget = operation({
  id: 'retryPostTarget',
  method: 'POST',
  path: '/post-targets/{id}/retry',
  tag: 'post-targets',
  summary: 'Queue a failed or rate-limited target again',
  description:
    'The next attempt starts at once, also where its failure is not retryable; `scheduledAt` stays as it was planned. A target with an unknown outcome is refused: the network is asked first, since a repeat could publish twice.',
  scope: 'posts.compose',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: PostTarget,
  codes: ['idempotency_key_reused', 'target_not_retryable', 'restore_unconfirmed', 'stream_full', 'quota_exceeded'],
  example: { data: targetExample },
  handle: (call) => actOnTarget(call, retrying),
});
