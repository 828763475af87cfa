import { post } from '#domain/post/post.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Post, PostReplace } from '#schemas/http/post.ts';
import { operation } from '../operation.ts';
import { answerPost } from '../posts/answers.ts';
import { bodyOf } from '../posts/body.ts';
import { checkDraft } from '../posts/checks.ts';
import { withDecision } from '../posts/decisions.ts';
import { draftExample } from '../posts/examples.ts';
import { refOfDraft } from '../posts/external-ref.ts';
import { asDraft } from '../posts/load.ts';
import { Reads } from '../posts/reads.ts';
import { PostWarnings } from '../posts/warnings.ts';

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
    const { id } = call.params;
    const body = bodyOf(call.body);
    const [reads, warned] = [new Reads(call), new PostWarnings(call)];
    const refs = refOfDraft(call, body);
    const { state, events, revision } = await call.stream(post).act({
      accept: async ({ state }) => {
        const { clientId } = asDraft(state);
        await checkDraft(call, clientId, body, reads);
        warned.beginDraft(id, clientId, body, reads);
      },
      command: () => ({ type: 'ReplaceDraft', body }),
      rule: refs.claim,
      optional: true,
    });
    await refs.release();
    const warnings = await warned.of({ id, state, sent: call.body, notes: call.notes });
    const data = await withDecision(call, answerPost(id, state, events), { state, events });
    return { data, revision, warnings };
  },
});
