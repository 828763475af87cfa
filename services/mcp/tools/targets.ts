import { type Static, type TObject, Type } from 'typebox';
import type { PostTargetBulkResult as ResultSchema } from '#schemas/http/post-target-bulk.ts';
import { invalid, Refusal } from '#services/api/call/refusal.ts';
import type { ToolCall } from '../call.ts';
import { changes, publishes, tool } from '../tool.ts';
import {
  Args,
  Bare,
  Id,
  Instant,
  joined,
  Maybe,
  Mode,
  many,
  Next,
  Nullable,
  PlainKey,
  Platforms,
  Replayed,
  replayedWords,
  Text,
} from '../words.ts';
import { defined, instantIn, LocalTime, networksOf, zoneWords } from './composing.ts';
import { nextStepOf, type Post, shownTargets, Targets, targetLine } from './post-words.ts';

/** What can be done about targets that are not out: another time, another try, or none. */

type Bulk = Static<typeof ResultSchema>;
/** As many ids as one bulk call takes. */
const maxAtOnce = 100;
const maxRefusedShown = 25;

const which = {
  postId: Maybe(Id('Only targets of this post.')),
  targetIds: Maybe(
    Type.Array(Id(), {
      minItems: 1,
      maxItems: maxAtOnce,
      description: 'Exactly these targets. Absent: all that it is possible for.',
    }),
  ),
  clientId: Maybe(Id('Only targets of this client.')),
  platforms: Maybe(Platforms('Only these networks.')),
  exceptPlatforms: Maybe(Platforms('All networks but these.')),
  from: Maybe(Instant('Only targets due at or after; with `to`, in place of a postId.')),
  to: Maybe(Instant('Only targets due before.')),
};
const Which = Type.Object(which);
type Which = Static<typeof Which>;

const Done = Type.Object({
  mode: Mode,
  postId: Nullable(Type.String()),
  doneInAll: Type.Integer(),
  done: Targets(),
  refused: Type.Array(Type.Object({ targetId: Type.String(), code: Type.String(), message: Type.String() })),
  replayed: Replayed,
  nextStep: Next,
});

interface Action {
  readonly body: { readonly action: 'reschedule' | 'retry' | 'cancel' } & Readonly<Record<string, unknown>>;
  /** Whether a repeat would do more than the call did. */
  readonly isStep: boolean;
  /** Answered where there is no target for it. */
  readonly none: 'target_not_pending' | 'target_not_retryable';
  readonly words: string;
  readonly nextStep: string;
}

/** The targets as the bulk operation takes them: it chooses once for all repeats of a call. @throws Refusal */
const selection = async (call: ToolCall, { targetIds, exceptPlatforms, ...chosen }: Which) => {
  const { postId, clientId, from, to } = chosen;
  const networks = networksOf({ ...chosen, ...defined({ exceptPlatforms }) });
  const select = { ...chosen, ...defined({ platforms: networks }) };
  if (targetIds === undefined) {
    if (postId === undefined && (from === undefined || to === undefined)) {
      throw invalid('/postId', 'required', 'is missing: name a post, targetIds, or a time range by from and to');
    }
    return { select };
  }
  if ([clientId, networks, from, to].some((one) => one !== undefined)) {
    throw invalid('/targetIds', 'exclusive', 'must stand alone: they say which targets are meant');
  }
  if (postId !== undefined) {
    const { data: post } = await call.invoke<Post>('getPost', { params: { id: postId } });
    const own = new Set(post.targets.map((one) => one.id));
    const strange = targetIds.find((one) => !own.has(one.toLowerCase()));
    if (strange !== undefined) throw new Refusal('not_found', `The post has no target ${strange}.`);
  }
  return { targetIds };
};

const act = async (call: ToolCall, chosen: Which, what: Action) => {
  const { isStep, none, words } = what;
  const body = { ...what.body, ...(await selection(call, chosen)) };
  const key = call.key(isStep ? 'step' : 'change');
  const { data, replayed } = await call.invoke<Bulk>('bulkPostTargets', { body, key });
  if (data.results.length === 0 && chosen.postId !== undefined) {
    // A selection of a post that nobody has is empty, too.
    const { data: post } = await call.invoke<Post>('getPost', { params: { id: chosen.postId } });
    const how =
      post.status === 'draft'
        ? ': it is a draft, which revise_post and publish_draft change'
        : `: the post is ${post.status}`;
    throw new Refusal(none, `No target allows it${how}.`);
  }
  const nextStep =
    data.results.length === 0 ? 'Nothing in this range allows it: find_targets shows what is there.' : what.nextStep;
  const all = data.results.flatMap(({ target }) => (target === undefined ? [] : [target]));
  const done = shownTargets(call.cuts, all);
  const refused = data.results.flatMap(({ targetId, error }) =>
    error === undefined ? [] : [{ targetId, code: error.code, message: error.detail ?? error.title }],
  );
  const shown = [...call.cuts.rows('refused', refused, maxRefusedShown)];
  const undone = all.filter(({ undo }) => undo === 'pending').length;
  const waiting = undone === 0 ? '' : `, ${undone} of them only once the network has given them back or moved them`;
  const text = joined(
    `${many(all.length, 'target')} ${words}${waiting} (${call.mode}).`,
    replayedWords(replayed),
    ...done.map(targetLine),
    all.length > done.length ? `… and ${all.length - done.length} more targets` : null,
    ...shown.map((one) => `- not ${one.targetId}: ${one.message} (${one.code})`),
    nextStep,
  );
  const postId = chosen.postId ?? null;
  const { mode } = call;
  return {
    text,
    data: { mode, postId, doneInAll: all.length, done, refused: shown, replayed, nextStep },
  };
};

const moves = {
  shiftMinutes: Maybe(
    Type.Integer({
      minimum: -525_600,
      maximum: 525_600,
      description: 'Moves each by so many minutes from its own time; negative: earlier.',
    }),
  ),
  scheduledAt: Maybe(Instant('One new time for all.')),
  scheduledLocal: Maybe(LocalTime('One new time for all, as wall-clock time in `timezone`.')),
  timezone: Maybe(Text(100, 'IANA zone of scheduledLocal: Europe/Berlin.')),
};
type Moves = Partial<Static<TObject<typeof moves>>>;

/** @throws Refusal 422 unless the call says one time, or one step */
const moveOf = ({ shiftMinutes, scheduledAt, scheduledLocal, timezone }: Moves) => {
  const given = [shiftMinutes, scheduledAt, scheduledLocal].filter((one) => one !== undefined);
  if (given.length !== 1) {
    throw invalid('/shiftMinutes', 'exclusive', 'send exactly one of shiftMinutes, scheduledAt and scheduledLocal');
  }
  if ((scheduledLocal === undefined) !== (timezone === undefined)) {
    throw invalid('/timezone', 'exclusive', 'goes with scheduledLocal, and scheduledLocal with it');
  }
  if (shiftMinutes !== undefined) return { shiftMinutes };
  return { scheduledAt: scheduledAt ?? instantIn({ ...defined({ scheduledLocal, timezone }) }) };
};

export const reschedule = tool({
  name: 'reschedule',
  title: 'Move posts to another time',
  description:
    'Moves targets that are not out yet: by shiftMinutes, which keeps their distances (“two hours later”), or to one new time. Of a post, of a time range with clientId or platforms, or by targetIds; at most 500. The same step twice is done once: for another one send a new idempotencyKey. Drafts get their time from revise_post or publish_draft.',
  scopes: ['posts.read', 'posts.compose'],
  hints: changes,
  input: Args({ ...which, ...moves, idempotencyKey: PlainKey }),
  output: Done,
  run: async (call, { idempotencyKey: _key, ...args }) => {
    const { shiftMinutes, scheduledAt, scheduledLocal, timezone, ...chosen } = args;
    const move = moveOf(args);
    const answer = await act(call, chosen, {
      body: { action: 'reschedule', ...move },
      isStep: shiftMinutes !== undefined,
      none: 'target_not_pending',
      words: 'have a new time',
      nextStep: 'Ask post_status after that time to learn how it went.',
    });
    const zone = zoneWords({ ...defined({ scheduledLocal, timezone }) });
    return zone === null ? answer : { ...answer, text: `${zone}\n${answer.text}` };
  },
});

export const retry = tool({
  name: 'retry',
  title: 'Try failed targets again',
  description:
    'Tries targets again that failed or that the network slowed down, at once and with the same content, chosen as in reschedule: of a post, of a time range, or by targetIds. Read the failures first: a content that the network refuses needs revise_post, an account that lost its authorization needs a person.',
  scopes: ['posts.read', 'posts.compose'],
  hints: publishes,
  input: Args({ ...Bare(which), idempotencyKey: PlainKey }),
  output: Done,
  run: (call, { idempotencyKey: _key, ...chosen }) =>
    act(call, chosen, {
      body: { action: 'retry' },
      isStep: false,
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
    return { text, data: { mode, postId: id, doneInAll: 0, done, refused: [], replayed: false, nextStep } };
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
  return { text, data: { mode, postId: id, doneInAll: canceled, done, refused: [], replayed: false, nextStep } };
};

export const cancel = tool({
  name: 'cancel',
  title: 'Cancel posts or discard a draft',
  description:
    'Cancels what is not out yet: a whole post, targets of a time range (“everything next week”), or targetIds, chosen as in reschedule; a draft is discarded. What is canceled does not come back, so do it only when the person asked for it. It takes nothing back that is published: the answer says how each target stands.',
  scopes: ['posts.read', 'posts.compose'],
  hints: { ...changes, destructiveHint: true },
  input: Args({ ...Bare(which), idempotencyKey: PlainKey }),
  output: Done,
  run: (call, { idempotencyKey: _key, ...chosen }) => {
    const { postId, ...narrower } = chosen;
    if (postId !== undefined && Object.values(narrower).every((one) => one === undefined)) {
      return cancelAll(call, postId);
    }
    return act(call, chosen, {
      body: { action: 'cancel' },
      isStep: false,
      none: 'target_not_pending',
      words: 'canceled',
      nextStep: 'post_status has the whole post.',
    });
  },
});
