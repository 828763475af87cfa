import { IdParams } from '#schemas/http/common.ts';
import { PostTarget, PostTargetReschedule } from '#schemas/http/post-target.ts';
import { operation } from '../operation.ts';
import { targetExample } from '../posts/examples.ts';
import { actOnTarget } from '../posts/target-action.ts';
import { rescheduling } from '../posts/target-actions.ts';

export const reschedulePostTarget = operation({
  id: 'reschedulePostTarget',
  method: 'POST',
  path: '/post-targets/{id}/reschedule',
  tag: 'post-targets',
  summary: 'Move a target to another time',
  description:
    'Send either `scheduledAt`, by which the target loses its jitter, or `shiftMinutes`, by which it keeps it. The next attempt starts at the new time, whatever `retryAt` was. Possible while the target is pending, rate_limited or awaiting_approval, and while the network’s own scheduler has it (`handed_to_platform`): then the answer says `undo: pending` and has the old time, until the network has deleted the post. A native target is handed over again at its new time where the network takes it, else it becomes managed; a managed target stays managed. A target that the network publishes within a minute, or that is about to be canceled: 409 `target_not_pending`.',
  scope: 'posts.compose',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: PostTargetReschedule,
  answer: PostTarget,
  codes: [
    'validation_failed',
    'idempotency_key_reused',
    'target_not_pending',
    'schedule_in_past',
    'schedule_too_far',
    'cadence_exceeded',
    'stream_full',
    'quota_exceeded',
  ],
  example: { body: { shiftMinutes: 30 }, data: targetExample },
  handle: (call) => actOnTarget(call, rescheduling(call.body)),
});
