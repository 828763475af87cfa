import { PostTargetBulk, PostTargetBulkResult } from '#schemas/http/post-target-bulk.ts';
import { operation } from '../operation.ts';
import { actOnTargets } from '../posts/bulk-targets.ts';
import { bulkTargetsExample } from '../posts/examples.ts';

export const bulkPostTargets = operation({
  id: 'bulkPostTargets',
  method: 'POST',
  path: '/post-targets/bulk',
  tag: 'post-targets',
  summary: 'Move, retry or cancel many targets',
  description: [
    'Each target is treated as by the operation of the same name, and one that is refused stops no other: the call answers 200 with a result for each. An id that is unknown, or of another workspace, is refused with `not_found`.',
    '`select` takes the targets of a post, or of a time range, for which the action is possible, as the lists show them with all that the caller wrote before. They are chosen once, with their new times: a repeat under the same key moves no target twice, and none that came into the range meanwhile.',
    'The new times are decided once. With an Idempotency-Key, a repeat of the call answers the same results; if the call was cut off, or answered 503, the repeat under the same key moves the rest of the targets to the times that were decided first.',
    'Counts as one request for each target, taken as debt.',
  ].join('\n\n'),
  scope: 'posts.compose',
  idempotent: 'accepted',
  cost: 1,
  body: PostTargetBulk,
  answer: PostTargetBulkResult,
  codes: ['validation_failed'],
  example: bulkTargetsExample,
  handle: (call) => actOnTargets(call),
});
