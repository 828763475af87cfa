import { IdParams } from '#schemas/http/common.ts';
import { Post, PostPublish } from '#schemas/http/post.ts';
import { withLiveCampaign } from '../campaigns/check.ts';
import { operation } from '../operation.ts';
import { answerPost } from '../posts/answers.ts';
import { repeatWarnings, withDecision } from '../posts/decisions.ts';
import { postExample } from '../posts/examples.ts';
import { publishDraft } from '../posts/publish.ts';
import { PostWarnings } from '../posts/warnings.ts';

export const publishPost = operation({
  id: 'publishPost',
  method: 'POST',
  path: '/posts/{id}/publish',
  tag: 'posts',
  summary: 'Publish or schedule a draft',
  description:
    'Runs every check that a draft skips, then schedules the draft as POST /posts does. A `schedule` in the body replaces the schedule of the draft.',
  scope: 'posts.compose',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  bodyOptional: true,
  params: IdParams,
  body: PostPublish,
  answer: Post,
  codes: [
    'validation_failed',
    'idempotency_key_reused',
    'post_not_draft',
    'restore_unconfirmed',
    'changes_requested',
    'schedule_in_past',
    'schedule_too_far',
    'cadence_exceeded',
    'client_archived',
    'account_not_in_client',
    'account_disconnected',
    'no_targets',
    'media_not_publishable',
    'media_not_in_client',
    'thread_not_supported',
    'quota_exceeded',
  ],
  example: { body: { schedule: { type: 'now' } }, data: postExample.data },
  handle: async (call) => {
    const warned = new PostWarnings(call);
    const { state, events, revision, replayed } = await publishDraft(call, warned);
    const { id } = call.params;
    const answer = await withLiveCampaign(call, answerPost(id, state, events));
    const data = await withDecision(call, answer, { state, events });
    const warnings = await warned.of({ id, state, notes: call.notes, replayed });
    return { data, revision, replayed, warnings: [...(await repeatWarnings(call, id, events)), ...warnings] };
  },
});
