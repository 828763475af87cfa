import { type PostCommand, post } from '#domain/post.ts';
import { Post, PostCreate } from '#schemas/http/post.ts';
import { operation } from '../operation.ts';
import { answerPost } from '../posts/answers.ts';
import { bodyOf } from '../posts/body.ts';
import { checkDraft, planPost } from '../posts/compose.ts';
import { postExample } from '../posts/examples.ts';
import { fanOutOrLeave } from '../posts/load.ts';

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
    'A post has one target per connected account, each with its own due instant. With `saveDraft` the post is kept as a draft and has no targets yet.',
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
    'not_supported_yet',
  ],
  example: postExample,
  handle: async (call) => {
    const { context } = call;
    const { clientId, saveDraft, ...input } = call.body;
    const body = bodyOf(input);
    const createdBy = call.principal.actor;
    const { id, state, events, replayed } = await call.stream(post).create({
      command: async (id): Promise<PostCommand> => {
        if (saveDraft) {
          await checkDraft(call, clientId, body);
          return { type: 'Draft', clientId, createdBy, body };
        }
        const plan = await planPost(call, { id, clientId, body, planNumber: 1 });
        return { type: 'Schedule', commandId: context.commandId, clientId, createdBy, body, plan };
      },
    });
    const loaded = replayed ? undefined : { state, events, revision: events.at(-1)?.revision ?? -1 };
    if (state.status === 'live') await fanOutOrLeave(call, id, context, loaded);
    const data = answerPost(id, state, events);
    return { data, revision: data.revision, replayed };
  },
});
