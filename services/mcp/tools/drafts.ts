import { Type } from 'typebox';
import { maxContent } from '#schemas/post.ts';
import { invalid } from '#services/api/call/refusal.ts';
import type { ToolCall } from '../call.ts';
import { publishes, tool } from '../tool.ts';
import { Args, Bare, Id, joined, Maybe, Mode, many, Next, PlainKey, Replayed, replayedWords, Text } from '../words.ts';
import {
  contentOf,
  forbidTime,
  hasTime,
  requireTime,
  type SaidArgs,
  said,
  scheduleOf,
  targetsOf,
  timezoneOf,
  type WhenArgs,
  type WhereArgs,
  when,
  where,
  zoneWords,
} from './composing.ts';
import { nextStepOf, type Post, shownTargets, Targets, targetLine } from './post-words.ts';

/** Changes of posts that exist, and the publication of a draft. */

const content = Maybe(Text(maxContent, 'The new text. Absent: it stays.'));

/** Members of a draft that a replacement has to repeat, because an absent one returns to its default. */
const kept = [
  ...([
    'content',
    'mediaIds',
    'variants',
    'schedule',
    'scheduleMode',
    'timezone',
    'aiDisclosure',
    'requestApproval',
  ] as const),
  ...(['campaignId', 'externalRef', 'thread', 'mediaAltTexts', 'coverMediaId', 'coverFrameMs'] as const),
] as const;

/** A draft has the zone UTC where nobody named one, and none that counts without a wall-clock time. */
const hasZone = ({ timezone, schedule }: Post): boolean => timezone !== 'UTC' && schedule.scheduledLocal !== null;

const bodyOf = (post: Post): Record<string, unknown> => ({
  ...Object.fromEntries(
    kept.flatMap((name) =>
      post[name] === null || (name === 'timezone' && !hasZone(post)) ? [] : [[name, post[name]]],
    ),
  ),
  targets: post.targetSelection,
});

/** The wall-clock time of the draft, where the call names only its zone. */
const timeOf = <A extends WhenArgs>(args: A, { schedule: { scheduledLocal } }: Post): A =>
  hasTime(args) || args.timezone === undefined || scheduledLocal === null ? args : { ...args, scheduledLocal };

const Changed = Type.Object({
  mode: Mode,
  postId: Type.String(),
  status: Type.String(),
  targets: Targets(),
  targetsInAll: Type.Integer(),
  nextStep: Next,
});

const shown = ({ mode, cuts }: ToolCall, post: Post) => ({
  mode,
  postId: post.id,
  status: post.status,
  targets: shownTargets(cuts, post.targets),
  targetsInAll: post.targets.length,
  nextStep: nextStepOf(post),
});

const moving = ['scheduledAt', 'scheduledLocal', 'timezone', 'spreadMinutes'] as const;
const going = ['accountIds', 'platforms', 'exceptPlatforms'] as const;
const revisable = { ...said, ...where, ...when };
type RevisedArgs = SaidArgs & WhereArgs & WhenArgs;

/** A draft is replaced as a whole: the members that were not sent are those of this revision, and of no other. */
const changeDraft = async (call: ToolCall, draft: Post, revision: number | undefined, args: RevisedArgs) => {
  const selects = going.some((name) => args[name] !== undefined);
  const time = timeOf(args, draft);
  const body: Record<string, unknown> = {
    ...bodyOf(draft),
    ...contentOf(args),
    ...(selects ? { targets: await targetsOf(call, draft.clientId, args) } : {}),
    ...(hasTime(time) ? { schedule: scheduleOf(time) } : {}),
    ...timezoneOf(time),
  };
  if (hasTime(time)) delete body.timezone;
  const ifMatch = `"${revision ?? draft.revision}"`;
  const { data } = await call.invoke<Post>('updatePost', { params: { id: draft.id }, body, ifMatch });
  const answer = shown(call, data);
  return {
    text: joined(`The draft ${draft.id} is changed (${call.mode}).`, zoneWords(time), answer.nextStep),
    data: { ...answer, replayed: false, changed: 0, skipped: [] },
  };
};

/** @throws Refusal 422 for what only a draft can change */
const requireContentAlone = (args: RevisedArgs, { status }: Post): void => {
  for (const [names, how] of [
    [moving, 'reschedule moves it'],
    [going, 'cancel takes accounts out, and compose_post makes a post for others'],
  ] as const) {
    const name = names.find((one) => args[one] !== undefined);
    if (name !== undefined)
      throw invalid(`/${name}`, 'exclusive', `only changes a draft, and the post is ${status}: ${how}`);
  }
};

export const revisePost = tool({
  name: 'revise_post',
  title: 'Change a post',
  description:
    'Changes a draft, or the content of a post that is scheduled, waits for approval or failed; a failed target is tried again with it. Only what you send changes, each argument the whole of what it names, as in compose_post. A draft stays one; accounts and time are changed of a draft alone. What is published already stays as it is: the answer says which targets that concerns. A changed post may need another approval.',
  scopes: ['posts.read', 'posts.compose'],
  hints: publishes,
  input: Args({ postId: Id('The post.'), content, ...Bare(revisable), idempotencyKey: PlainKey }),
  output: Type.Object({
    ...Changed.properties,
    replayed: Replayed,
    changed: Type.Integer({ description: 'Targets that go out as revised.' }),
    skipped: Type.Array(Type.Object({ targetId: Type.String(), reason: Type.String() })),
  }),
  run: async (call, { postId, idempotencyKey: _key, ...args }) => {
    interface Revised extends Post {
      readonly revise: { readonly changed: string[]; readonly skipped: { targetId: string; reason: string }[] };
    }
    const { data: post, revision } = await call.invoke<Post>('getPost', { params: { id: postId } });
    if (post.status === 'draft') return changeDraft(call, post, revision, args);
    requireContentAlone(args, post);
    const asked = { params: { id: postId }, body: contentOf(args), key: call.key('change') };
    const { data, replayed } = await call.invoke<Revised>('revisePost', asked);
    const { changed, skipped } = data.revise;
    const answer = shown(call, data);
    const text = joined(
      `${many(changed.length, 'target')} of ${postId} changed, ${skipped.length} stay as they are (${call.mode}).`,
      replayedWords(replayed),
      ...answer.targets.map(targetLine),
      answer.nextStep,
    );
    return {
      text,
      data: { ...answer, replayed, changed: changed.length, skipped: [...call.cuts.rows('skipped', skipped, 25)] },
    };
  },
});

export const publishDraft = tool({
  name: 'publish_draft',
  title: 'Publish or schedule a draft',
  description:
    'Sends a draft out: at a time (action schedule with the times of compose_post) or at once (action publish_now). Do it only when the person has asked for exactly that. Every check runs now, and the call is refused as a whole if one account would refuse the post.',
  scopes: ['posts.compose'],
  hints: publishes,
  input: Args({
    postId: Id('The draft.'),
    action: Type.Enum(['schedule', 'publish_now'], {
      description: 'schedule: at the time that you send; publish_now: at once.',
    }),
    ...Bare(when),
    acknowledgeDecision: Maybe(
      Type.Boolean({
        description:
          'True: the person knows that an approver asked for changes, and wants the unchanged content out again.',
      }),
    ),
    idempotencyKey: PlainKey,
  }),
  output: Type.Object({ ...Changed.properties, replayed: Replayed }),
  run: async (call, { postId, action, acknowledgeDecision = false, idempotencyKey: _key, ...args }) => {
    if (action === 'schedule') requireTime(args);
    else forbidTime(args);
    const body = { schedule: scheduleOf(args), acknowledgeDecision };
    const asked = { params: { id: postId }, body, key: call.key('change') };
    const { data, replayed } = await call.invoke<Post>('publishPost', asked);
    const answer = shown(call, data);
    const where = call.mode === 'sandbox' ? 'in the sandbox: no real network sees it' : 'live';
    const what = data.status === 'pending_approval' ? 'is held until a person approves it' : 'goes out';
    const text = joined(
      `The post ${postId} ${what}, ${where}: ${many(data.targets.length, 'target')}.`,
      replayedWords(replayed),
      zoneWords(args),
      ...answer.targets.map(targetLine),
      answer.nextStep,
    );
    return { text, data: { ...answer, replayed } };
  },
});
