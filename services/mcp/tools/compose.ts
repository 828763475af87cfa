import { type Static, Type } from 'typebox';
import type { PostPreview as PreviewSchema } from '#schemas/http/preview.ts';
import { maxContent } from '#schemas/post.ts';
import type { ToolCall } from '../call.ts';
import type { Cuts } from '../cuts.ts';
import { maxNotices, Notice, noticeLines, noticeOf } from '../notices.ts';
import { publishes, reads, tool } from '../tool.ts';
import {
  Args,
  Bare,
  Id,
  IdempotencyKey,
  joined,
  Maybe,
  Mode,
  many,
  Next,
  Nullable,
  Replayed,
  replayedWords,
  Text,
} from '../words.ts';
import {
  contentOf,
  forbidTime,
  requireTime,
  said,
  scheduleOf,
  targetsOf,
  timezoneOf,
  when,
  where,
  zoneWords,
} from './composing.ts';
import {
  accountNames,
  maxTargetsShown,
  nextStepOf,
  type Post,
  shownTargets,
  Targets,
  targetLine,
} from './post-words.ts';

/** A new post: what it would be, and the post itself. */

type Preview = Static<typeof PreviewSchema>;

const composed = {
  clientId: Id('The client that the post belongs to.'),
  content: Text(maxContent, 'The text, for every network without a text of its own.'),
  ...said,
  ...where,
  ...when,
  campaignId: Maybe(Id('The campaign that the post belongs to.')),
  externalRef: Maybe(Text(100, 'Your own reference of the post, unique among the posts of the client.')),
  requestApproval: Maybe(Type.Boolean({ description: 'Submits it for approval where client or role require one.' })),
};

const Composed = Args(composed);
type Composed = Static<typeof Composed>;

const bodyOf = async (call: ToolCall, args: Composed, saveDraft: boolean) => {
  const { clientId, campaignId, externalRef, requestApproval } = args;
  const more = Object.entries({ campaignId, externalRef, requestApproval }).filter(([, one]) => one !== undefined);
  return {
    clientId,
    ...contentOf(args),
    targets: await targetsOf(call, clientId, args),
    schedule: scheduleOf(args),
    ...timezoneOf(args),
    ...Object.fromEntries(more),
    saveDraft,
  };
};

const warningsOf = ({ warnings, verdicts }: Preview): Notice[] => [
  ...warnings.map(noticeOf),
  ...verdicts.flatMap(({ platform, accountId, warnings: own }) =>
    own.map((one) => noticeOf({ ...one, platform, accountId })),
  ),
];

const problemsOf = ({ problems }: Preview): Notice[] =>
  problems.flatMap(({ code, detail, errors }): Notice[] =>
    errors.length === 0 ? [noticeOf({ code, message: detail })] : errors.map(noticeOf),
  );

const Would = Type.Object({
  platform: Type.String(),
  accountId: Nullable(Type.String(), 'Null: no account on this network.'),
  account: Nullable(Type.String()),
  ok: Type.Boolean({ description: 'Whether nothing refuses the post there.' }),
  text: Type.String(),
  length: Type.Object({ used: Type.Integer(), limit: Type.Integer() }),
  media: Type.Integer({ description: 'Number of files.' }),
  scheduledAt: Nullable(Type.String()),
});

const wouldGo = (cuts: Cuts, { verdicts }: Preview, names: ReadonlyMap<string, string>): Static<typeof Would>[] =>
  cuts
    .rows('targets', verdicts, maxTargetsShown)
    .map(({ platform, accountId, ok, text, length, media, scheduledAt }) => ({
      ...{ platform, accountId, ok, scheduledAt, length },
      account: accountId === null ? null : (names.get(accountId) ?? null),
      text: cuts.lines('text', text, 500),
      media: media.length,
    }));

const wouldLine = ({ platform, account, ok, length, scheduledAt }: Static<typeof Would>): string =>
  `- ${platform}${account === null ? '' : ` ${JSON.stringify(account)}`}: ${ok ? 'fine' : 'refused'}, text ${length.used} of ${length.limit}${scheduledAt === null ? ', no account' : `, due ${scheduledAt}`}`;

export const previewPost = tool({
  name: 'preview_post',
  title: 'Preview a post',
  description:
    'Tells what would go out where and when, every problem and every warning, without saving anything. Its arguments are those of compose_post: use it before when rules, lengths or media are in doubt. Without a time it judges the post as if it went out now.',
  scopes: ['posts.compose'],
  hints: reads,
  input: Args(Bare(composed)),
  output: Type.Object({
    mode: Mode,
    valid: Type.Boolean(),
    approvalRequired: Type.Boolean(),
    problems: Type.Array(Notice),
    warnings: Type.Array(Notice),
    targets: Type.Array(Would),
    targetsInAll: Type.Integer(),
    quota: Type.Object({
      needed: Type.Integer(),
      remaining: Nullable(Type.Integer(), 'Null: no limit.'),
    }),
    nextStep: Next,
  }),
  run: async (call, args) => {
    const { data: preview } = await call.invoke<Preview>('previewPost', { body: await bodyOf(call, args, false) });
    const names = await accountNames(call, args.clientId);
    const targets = wouldGo(call.cuts, preview, names);
    const [problems, warnings] = [problemsOf(preview), warningsOf(preview)];
    const { valid, approvalRequired, verdicts, quota } = preview;
    const nextStep = valid
      ? 'compose_post with the same arguments saves it as a draft; action decides whether it goes out.'
      : 'Correct the problems, then preview again.';
    const text = joined(
      `${valid ? 'The post could go out' : 'The post would be refused'} (${call.mode}): ${many(verdicts.length, 'target')}${approvalRequired ? ', held until a person approves' : ''}.`,
      zoneWords(args),
      ...targets.map(wouldLine),
      verdicts.length > targets.length ? `… and ${verdicts.length - targets.length} more targets` : null,
      ...noticeLines(call.cuts, 'Problems:', problems, 'problems'),
      ...noticeLines(call.cuts, 'Warnings:', warnings, 'warnings'),
      nextStep,
    );
    return {
      text,
      data: {
        mode: call.mode,
        ...{ valid, approvalRequired },
        problems: [...call.cuts.rows('problems', problems, maxNotices)],
        warnings: [...call.cuts.rows('warnings', warnings, maxNotices)],
        targets,
        targetsInAll: verdicts.length,
        quota: { needed: quota.needed, remaining: quota.remaining },
        nextStep,
      },
    };
  },
});

/** What the author should know, asked before the post is there: afterwards it would count as its own duplicate. */
const foresee = async (call: ToolCall, body: unknown): Promise<Preview> =>
  (await call.invoke<Preview>('previewPost', { body })).data;

const doneWords = (action: string, status: Post['status'], mode: string): string => {
  const live = mode === 'sandbox' ? ' in the sandbox: no real network sees it' : ' live';
  if (action === 'draft') return `Saved as a draft${live}. Nothing goes out yet.`;
  if (status === 'pending_approval') return `Saved and held until a person approves it${live}.`;
  return action === 'publish_now' ? `It is going out now${live}.` : `Scheduled${live}.`;
};

export const composePost = tool({
  name: 'compose_post',
  title: 'Compose a post',
  description:
    'Creates one post for the accounts of a client. By default it saves a draft, which nobody sees. Set action to schedule (with a time) or publish_now only when the person has asked for exactly that: what is out cannot be taken back from every network. The answer says what goes out where and when, and whether it was the sandbox or live.',
  scopes: ['posts.compose'],
  hints: { ...publishes, idempotentHint: false },
  input: Args({
    ...composed,
    action: Maybe(
      Type.Enum(['draft', 'schedule', 'publish_now'], {
        description:
          'draft (default): saved only, with its time if one is given; schedule: goes out at the time; publish_now: goes out at once.',
      }),
    ),
    idempotencyKey: IdempotencyKey,
  }),
  output: Type.Object({
    mode: Mode,
    postId: Type.String(),
    status: Type.String(),
    replayed: Replayed,
    approvalId: Nullable(Type.String()),
    targets: Targets('Where it goes; empty for a draft.'),
    targetsInAll: Type.Integer(),
    wouldGoTo: Type.Array(Type.Object({ platform: Type.String(), ok: Type.Boolean(), text: Type.String() }), {
      description: 'Of a draft: where it would go now, as in preview_post.',
    }),
    problems: Type.Array(Notice, { description: 'Of a draft: what refuses to be published so far.' }),
    warnings: Type.Array(Notice),
    nextStep: Next,
  }),
  run: async (call, { action = 'draft', idempotencyKey: _key, ...args }) => {
    if (action === 'schedule') requireTime(args);
    if (action === 'publish_now') forbidTime(args);
    const isDraft = action === 'draft';
    const body = await bodyOf(call, args, isDraft);
    const preview = await foresee(call, body);
    const { data: post, replayed } = await call.invoke<Post>('createPost', { body, key: call.key('create') });
    const names = await accountNames(call, args.clientId);
    const targets = shownTargets(call.cuts, post.targets, names);
    const wouldGoTo = isDraft ? wouldGo(call.cuts, preview, names) : [];
    // After a repeat the post itself would be its own duplicate.
    const warnings = replayed ? call.warnings.map(noticeOf) : warningsOf(preview);
    const problems = isDraft ? problemsOf(preview) : [];
    const nextStep = nextStepOf(post);
    const inAll = isDraft ? preview.verdicts.length : post.targets.length;
    const shown = isDraft ? wouldGoTo.map(wouldLine) : targets.map(targetLine);
    const text = joined(
      `${doneWords(action, post.status, call.mode)} postId ${post.id}, ${many(inAll, 'target')}.`,
      replayedWords(replayed),
      zoneWords(args),
      isDraft && shown.length > 0 ? 'It would go to:' : null,
      ...shown,
      inAll > shown.length ? `… and ${inAll - shown.length} more targets` : null,
      ...noticeLines(call.cuts, 'It could not go out like this:', problems, 'problems'),
      ...noticeLines(call.cuts, 'Warnings:', warnings, 'warnings'),
      nextStep,
    );
    return {
      text,
      data: {
        mode: call.mode,
        postId: post.id,
        status: post.status,
        replayed,
        approvalId: post.approvalId,
        targets,
        targetsInAll: inAll,
        wouldGoTo,
        problems: [...call.cuts.rows('problems', problems, maxNotices)],
        warnings: [...call.cuts.rows('warnings', warnings, maxNotices)],
        nextStep,
      },
    };
  },
});
