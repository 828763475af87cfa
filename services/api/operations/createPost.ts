import { type PostCommand, post } from '#domain/post.ts';
import { createIdempotently } from '#runtime/eventing/idempotency.ts';
import { Post, PostCreate } from '#schemas/http/post.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { operation } from '../operation.ts';
import { answerPost } from '../posts/answers.ts';
import { bodyOf } from '../posts/body.ts';
import { checkDraft, planPost } from '../posts/compose.ts';
import { postExample } from '../posts/examples.ts';

/**
 * The post's stream holds the whole plan in its first event, so its append is the acceptance. If we die before the
 * fan-out, or in it, the sweeper carries the plan out. Longer than most operations: half of it is what it promises.
 */
export const createPost = operation({
  id: 'createPost',
  method: 'POST',
  path: '/posts',
  tag: 'post',
  summary: 'Create a post',
  description:
    'Fans out into one target per connected account, each with its own due instant; with saveDraft it is kept as a draft instead.',
  scope: 'posts.compose',
  idempotent: 'required',
  cost: 1,
  etag: true,
  body: PostCreate,
  answer: Post,
  codes: [
    'validation_failed',
    'idempotency_key_reused',
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
  example: postExample,
  handle: async (call) => {
    const { deps, context, positions } = call;
    const { clientId, saveDraft, ...input } = call.body;
    const body = bodyOf(input);
    const createdBy = call.principal.actor;
    const born = await createIdempotently({
      store: deps.store,
      decider: post,
      operation: 'createPost',
      key: call.key ?? '',
      context,
      positions,
      command: async (id): Promise<PostCommand> => {
        if (saveDraft) {
          await checkDraft(call, clientId, body);
          return { type: 'Draft', clientId, createdBy, body };
        }
        const plan = await planPost(call, { id, clientId, body, planNumber: 1 });
        return { type: 'Schedule', commandId: context.commandId, clientId, createdBy, body, plan };
      },
    });
    const { state, events, replayed } = born;
    if (state.status === 'live') {
      // The post is accepted: whatever keeps the fan-out from ending here, the sweeper ends it.
      const loaded = { state, events, revision: events.at(-1)?.revision ?? -1 };
      await fanOut(deps.store, born.id, context, replayed ? { positions } : { positions, loaded }).catch(
        (error: unknown) =>
          deps.logger.warn(
            { err: error, postId: born.id, correlationId: call.correlationId },
            'fan-out is left to the sweeper',
          ),
      );
    }
    const data = answerPost(born.id, state, events);
    return { data, revision: data.revision, replayed };
  },
});
