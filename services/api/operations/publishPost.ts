import { Rejection } from '#domain/decider.ts';
import { type PostState, post } from '#domain/post.ts';
import { foldEvents, type Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Post, PostPublish } from '#schemas/http/post.ts';
import type { Plan, PostBody } from '#schemas/post.ts';
import { eventsUpTo } from '../commands.ts';
import { operation } from '../operation.ts';
import { answerPost } from '../posts/answers.ts';
import { scheduleOf } from '../posts/body.ts';
import { planPost } from '../posts/compose.ts';
import { postExample } from '../posts/examples.ts';
import { asDraft, fanOutOrLeave, type LoadedPost, loadPost } from '../posts/load.ts';

interface Decided {
  /**
   * Revision of the draft that passed the gates: nothing else is published. Longer than most operations: its two halves,
   * accept and effects, must be read together.
   */
  readonly revision: number;
  readonly schedule: PostBody['schedule'];
  readonly plan: Plan;
}

/**
 * The call is accepted with its plan, so that a repeat after a crash publishes the same plan. If we die between
 * acceptance and the post's append, nothing was published and the repeat publishes it. If we die after the append, the
 * sweeper carries the plan out.
 */
export const publishPost = operation({
  id: 'publishPost',
  method: 'POST',
  path: '/posts/{id}/publish',
  tag: 'post',
  summary: 'Publish or schedule a draft',
  description:
    'Checks everything that is not checked for a draft. A schedule in the body replaces the schedule of the draft.',
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
    'schedule_in_past',
    'schedule_too_far',
    'client_archived',
    'account_not_in_client',
    'account_disconnected',
    'no_targets',
    'media_not_publishable',
    'media_not_in_client',
    'thread_not_supported',
  ],
  example: { body: { schedule: { type: 'now' } }, data: postExample.data },
  handle: async (call) => {
    const { id } = call.params;
    const { deps, positions } = call;
    const held: { accepted?: LoadedPost; written?: Loaded<PostState> } = {};
    const { result, replayed } = await call.once(
      async (): Promise<Decided> => {
        const loaded = await loadPost(call, id);
        call.guard(loaded);
        const { clientId, body, plans } = asDraft(loaded.state);
        const schedule = call.body.schedule === undefined ? body.schedule : scheduleOf(call.body.schedule);
        const plan = await planPost(call, { id, clientId, body: { ...body, schedule }, planNumber: plans + 1 });
        held.accepted = loaded;
        return { revision: loaded.revision, schedule, plan };
      },
      async ({ revision, schedule, plan }, context) => {
        // Another call may have accepted a newer draft than the one this call saw.
        const loaded = held.accepted?.revision === revision ? held.accepted : await loadPost(call, id);
        const { clientId, createdBy, body } = loaded.state;
        const done = await execute(
          deps.store,
          post,
          id,
          { type: 'Schedule', commandId: context.commandId, clientId, createdBy, body: { ...body, schedule }, plan },
          context,
          {
            positions,
            loaded,
            guard: (now) => {
              if (now.state.status === 'draft' && now.revision !== revision) {
                throw new Rejection('revision_mismatch', 'The draft was replaced meanwhile.');
              }
            },
          },
        );
        held.written = done;
        await fanOutOrLeave(call, id, context, done);
        return { revision: done.state.status === 'live' ? done.state.planRevision : done.revision };
      },
    );
    const events = await eventsUpTo(call, `post-${id}`, result.revision, held.written?.events ?? []);
    deps.store.note(events, positions);
    return { data: answerPost(id, foldEvents(post, events), events), revision: result.revision, replayed };
  },
});
