import { type Static, Type } from 'typebox';
import type { PostTargetBulkResult as ResultSchema } from '#schemas/http/post-target-bulk.ts';
import { Refusal } from '#services/api/refusal.ts';
import type { ToolCall } from '../call.ts';
import { changes, publishes, tool } from '../tool.ts';
import { Args, Id, IdempotencyKey, Instant, joined, Maybe, Mode, many, Next } from '../words.ts';
import { nextStepOf, type Post, type PostTarget, shownTargets, TargetOut, targetLine } from './post-words.ts';

/** What can be done about targets that are not out: another time, another try, or none. */

type Bulk = Static<typeof ResultSchema>;
/** As many as one bulk call takes. */
const maxAtOnce = 100;
const maxRefusedTold = 25;

const postId = Id('The post.');
const targetIds = Maybe(
  Type.Array(Id('Id of a target.'), {
    minItems: 1,
    maxItems: maxAtOnce,
    description: 'Only these targets of the post, from post_status. Absent: all that it is possible for.',
  }),
);

const Done = Type.Object({
  mode: Mode,
  postId: Type.String(),
  done: Type.Array(TargetOut, { description: 'Targets as they stand now.' }),
  refused: Type.Array(Type.Object({ targetId: Type.String(), code: Type.String(), message: Type.String() }), {
    description: 'Targets for which it was not possible.',
  }),
  left: Type.Integer({ description: 'Targets that did not fit into this call: call again for them.' }),
  nextStep: Next,
});

interface Action {
  readonly action: 'reschedule' | 'retry' | 'cancel';
  readonly scheduledAt?: string;
  /** What the targets have in common for which it is possible. */
  readonly among: ReadonlySet<PostTarget['status']>;
  /** Answered where there is none of them. */
  readonly none: 'target_not_pending' | 'target_not_retryable';
  readonly words: string;
  readonly nextStep: string;
}

const act = async (call: ToolCall, id: string, wanted: readonly string[] | undefined, what: Action) => {
  const { action, scheduledAt, among, none, words, nextStep } = what;
  const { data: post } = await call.invoke<Post>('getPost', { params: { id } });
  const own = new Set(post.targets.map((one) => one.id));
  const strange = wanted?.find((one) => !own.has(one.toLowerCase()));
  if (strange !== undefined) throw new Refusal('not_found', `The post has no target ${strange}.`);
  const all = wanted ?? post.targets.filter(({ status }) => among.has(status)).map((one) => one.id);
  if (all.length === 0) throw new Refusal(none, `No target of the post allows it: the post is ${post.status}.`);
  const body = {
    action,
    targetIds: call.cuts.rows('targets of this call', all, maxAtOnce),
    ...(scheduledAt === undefined ? {} : { scheduledAt }),
  };
  const { data } = await call.invoke<Bulk>('bulkPostTargets', { body, key: call.key('change') });
  const done = shownTargets(
    call.cuts,
    data.results.flatMap(({ target }) => (target === undefined ? [] : [target])),
  );
  const refused = data.results.flatMap(({ targetId, error }) =>
    error === undefined ? [] : [{ targetId, code: error.code, message: error.detail ?? error.title }],
  );
  const count = data.results.length - refused.length;
  const left = all.length - body.targetIds.length;
  const text = joined(
    `${many(count, 'target')} ${words} (${call.mode}).`,
    ...done.map(targetLine),
    count > done.length ? `… and ${count - done.length} more targets` : null,
    ...call.cuts
      .rows('refused', refused, maxRefusedTold)
      .map((one) => `- not ${one.targetId}: ${one.message} (${one.code})`),
    left > 0 ? `${many(left, 'target')} did not fit into this call: call again for them.` : null,
    nextStep,
  );
  return {
    text,
    data: {
      mode: call.mode,
      postId: id,
      done,
      refused: [...call.cuts.rows('refused', refused, maxRefusedTold)],
      left,
      nextStep,
    },
  };
};

export const reschedule = tool({
  name: 'reschedule',
  title: 'Move a post to another time',
  description:
    'Moves the targets of a scheduled post that are not out yet to one new time. It takes an instant and no step, so that a repeat changes nothing. Drafts get their time from update_draft or publish_draft.',
  scopes: ['posts.read', 'posts.compose'],
  hints: changes,
  input: Args({ postId, targetIds, scheduledAt: Instant('The new time.'), idempotencyKey: IdempotencyKey }),
  output: Done,
  run: (call, { postId: id, targetIds: wanted, scheduledAt }) =>
    act(call, id, wanted, {
      action: 'reschedule',
      scheduledAt,
      among: new Set(['pending', 'rate_limited', 'awaiting_approval', 'handed_to_platform']),
      none: 'target_not_pending',
      words: 'have a new time',
      nextStep: 'Ask post_status after that time to learn how it went.',
    }),
});

export const retry = tool({
  name: 'retry',
  title: 'Try failed targets again',
  description:
    'Tries the targets of a post again that failed or that the network slowed down, at once and with the same content. Read the failures in post_status first: a content that the network refuses needs revise_post, an account that lost its authorization needs a person.',
  scopes: ['posts.read', 'posts.compose'],
  hints: publishes,
  input: Args({ postId, targetIds, idempotencyKey: IdempotencyKey }),
  output: Done,
  run: (call, { postId: id, targetIds: wanted }) =>
    act(call, id, wanted, {
      action: 'retry',
      among: new Set(['failed', 'rate_limited']),
      none: 'target_not_retryable',
      words: 'are tried again',
      nextStep: 'Ask post_status in some seconds to learn how it went.',
    }),
});

/** A post or a draft as a whole. */
const cancelAll = async (call: ToolCall, id: string) => {
  const { data: post } = await call.invoke<Post>('deletePost', { params: { id } });
  const { mode } = call;
  const done = shownTargets(call.cuts, post.targets);
  if (post.status === 'discarded') {
    const nextStep = 'The draft is gone.';
    const text = joined(`The draft ${id} is discarded (${mode}).`, nextStep);
    return { text, data: { mode, postId: id, done, refused: [], left: 0, nextStep } };
  }
  const canceled = post.targets.filter(({ status }) => status === 'canceled').length;
  const all = canceled === post.targets.length;
  const nextStep = all ? 'Nothing more of it goes out.' : nextStepOf(post);
  const text = joined(
    `${canceled} of ${many(post.targets.length, 'target')} of the post ${id} canceled (${mode}).`,
    ...done.map(targetLine),
    post.targets.length > done.length ? `… and ${post.targets.length - done.length} more targets` : null,
    nextStep,
  );
  return { text, data: { mode, postId: id, done, refused: [], left: 0, nextStep } };
};

export const cancel = tool({
  name: 'cancel',
  title: 'Cancel a post or discard a draft',
  description:
    'Cancels what of a post is not out yet, all of it or single targets; a draft is discarded. What is canceled does not come back, so do it only when the person asked for it. It takes nothing back that is published: the answer says how each target stands.',
  scopes: ['posts.read', 'posts.compose'],
  hints: { ...changes, destructiveHint: true },
  input: Args({ postId, targetIds, idempotencyKey: IdempotencyKey }),
  output: Done,
  run: (call, { postId: id, targetIds: wanted }) =>
    wanted === undefined
      ? cancelAll(call, id)
      : act(call, id, wanted, {
          action: 'cancel',
          among: new Set(),
          none: 'target_not_pending',
          words: 'canceled',
          nextStep: 'post_status has the whole post.',
        }),
});
