import { newestBody, post } from '#domain/post/post.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { IdParams } from '#schemas/http/common.ts';
import { PostRevise, RevisedPost } from '#schemas/http/post-revise.ts';
import { withLiveCampaign } from '../campaigns/check.ts';
import { operation } from '../operation.ts';
import { answerWithTargets } from '../posts/answers.ts';
import { repeatWarnings, withDecision } from '../posts/decisions.ts';
import { postDataExample } from '../posts/examples.ts';
import { changesTimes, revisePost as revise } from '../posts/revise.ts';
import { PostWarnings } from '../posts/warnings.ts';
import { invalid } from '../refusal.ts';

export const revisePost = operation({
  id: 'revisePost',
  method: 'POST',
  path: '/posts/{id}/revise',
  tag: 'posts',
  summary: 'Revise a scheduled post',
  description: [
    'Changes a post for its targets that are pending, held or failed; a failed one is tried again with the new content, at its time or at once where that has passed. Every check of POST /posts runs on the revised post, for exactly these targets, and the call is refused as a whole if one of them cannot go out.',
    'A member that is sent replaces that of the post; one that is absent stays. With a `schedule`, the targets get new times; without one, each keeps its own. A target that is published, canceled, on its way, rate-limited or with an unknown outcome keeps the content and the time that it had, and shows them although the post shows the new ones; `revise.skipped` says why.',
    'If the publisher takes a target at the same moment, it goes out with either the former or the new content as a whole: `revise` says which. Of two revises at the same time the later one begins from the result of the other.',
  ].join('\n\n'),
  scope: 'posts.compose',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  merge: true,
  params: IdParams,
  body: PostRevise,
  answer: RevisedPost,
  codes: [
    'validation_failed',
    'idempotency_key_reused',
    'post_not_scheduled',
    'target_not_pending',
    'schedule_in_past',
    'schedule_too_far',
    'cadence_exceeded',
    'client_archived',
    'media_not_publishable',
    'media_not_in_client',
    'thread_not_supported',
    'stream_full',
    'quota_exceeded',
  ],
  example: {
    body: { content: postDataExample.content },
    data: {
      ...postDataExample,
      revision: 1,
      revise: { changed: postDataExample.targets.map(({ id }) => id), skipped: [] },
    },
  },
  handle: async (call) => {
    if (Object.keys(call.body).length === 0) throw invalid('', 'required', 'at least one member must be sent');
    const { id } = call.params;
    const warned = new PostWarnings(call);
    const { events, targetEvents, revision, replayed, changed, skipped } = await revise(call, warned);
    const state = foldEvents(post, events);
    const answer = await withLiveCampaign(call, answerWithTargets(events, targetEvents));
    const shown = await withDecision(call, answer, { state, events });
    const isTimed = state.status !== 'none' && changesTimes(call.body, newestBody(state));
    const targets = shown.targets.filter((one) => changed.includes(one.id));
    const about = { id, state, targets, sent: call.body, notes: call.notes, isTimed, replayed };
    const warnings = [...(await repeatWarnings(call, id, events)), ...(await warned.of(about))];
    return { data: { ...shown, revise: { changed, skipped } }, revision, replayed, warnings };
  },
});
