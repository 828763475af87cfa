import { post } from '#domain/post.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Post, PostReplace } from '#schemas/http/post.ts';
import { operation } from '../operation.ts';
import { answerPost } from '../posts/answers.ts';
import { bodyOf } from '../posts/body.ts';
import { checkDraft } from '../posts/checks.ts';
import { draftExample } from '../posts/examples.ts';
import { refOfDraft } from '../posts/external-ref.ts';
import { asDraft } from '../posts/load.ts';
import { postWarnings } from '../posts/warnings.ts';

export const updatePost = operation({
  id: 'updatePost',
  method: 'PATCH',
  path: '/posts/{id}',
  tag: 'posts',
  summary: 'Replace a whole draft: members that are not sent return to their defaults',
  description:
    'Replaces the whole draft: an optional member that is not sent returns to its default; `targets` and `schedule` are required. Only a draft can be replaced. The input is read as that of POST /posts.',
  scope: 'posts.compose',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: PostReplace,
  answer: Post,
  codes: [
    'validation_failed',
    'post_not_draft',
    'client_archived',
    'media_not_in_client',
    'already_exists',
    'stream_full',
  ],
  example: draftExample,
  handle: async (call) => {
    const body = bodyOf(call.body);
    const refs = refOfDraft(call, body);
    const { state, events, revision } = await call.stream(post).act({
      accept: async ({ state }) => checkDraft(call, asDraft(state).clientId, body),
      command: () => ({ type: 'ReplaceDraft', body }),
      rule: refs.claim,
      optional: true,
    });
    await refs.release();
    const { id } = call.params;
    return { data: answerPost(id, state, events), revision, warnings: postWarnings(id, state) };
  },
});
