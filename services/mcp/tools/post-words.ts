import { type Static, Type } from 'typebox';
import { Rejection } from '#domain/decider.ts';
import type { Account as AccountSchema } from '#schemas/http/account.ts';
import type { Post as PostSchema } from '#schemas/http/post.ts';
import type { PostTarget as TargetSchema } from '#schemas/http/post-target.ts';
import type { Failure as FailureSchema } from '#schemas/target.ts';
import type { ToolCall } from '../call.ts';
import type { Cuts } from '../cuts.ts';
import { joined, Nullable } from '../words.ts';

/** A post and its targets as a model reads them. */

export type Post = Static<typeof PostSchema>;
export type PostTarget = Static<typeof TargetSchema>;
type Failure = Static<typeof FailureSchema>;
type Account = Static<typeof AccountSchema>;

/** The most targets that one answer lists; the rest is counted. */
export const maxTargetsShown = 25;

export const TargetOut = Type.Object({
  targetId: Type.String(),
  accountId: Type.String(),
  account: Nullable(Type.String(), 'Its name on its network.'),
  platform: Type.String(),
  status: Type.String(),
  scheduledAt: Type.String(),
  localTime: Type.String({ description: 'The same in its zone.' }),
  publishedAt: Nullable(Type.String()),
  permalink: Nullable(Type.String()),
  undo: Nullable(
    Type.String(),
    'pending: the network is asked to give the post back, and the target is canceled, moved or revised only then; failed: it did not.',
  ),
  problem: Nullable(
    Type.Object({
      code: Type.String(),
      message: Type.String(),
      whatToDo: Type.String(),
      retryAt: Nullable(Type.String(), 'When it is tried again by itself.'),
    }),
    'Why it is not out.',
  ),
});
export type TargetOut = Static<typeof TargetOut>;

/**
 * The same targets in the answer of a tool that changes them. The rows are whole; their schema names what every caller
 * needs, since it would stand in the list of tools once for each of them.
 */
export const Targets = (description?: string) =>
  Type.Array(Type.Object({ targetId: Type.String(), platform: Type.String(), status: Type.String() }), {
    description: joined(description ?? null, 'Rows as in post_status.').replace('\n', ' '),
  });

export const localTime = (instant: string, timezone: string): string => {
  const time = new Date(instant).toLocaleString('sv-SE', {
    timeZone: timezone,
    dateStyle: 'short',
    timeStyle: 'short',
  });
  return `${time} ${timezone}`;
};

const remedies: Readonly<Record<string, string>> = {
  reauth_required: 'The holder of the account must connect it again, through connect_link. Then call retry.',
  rate_limited: 'Nothing: it is tried again by itself.',
  invalid_content: 'Change what the network refuses with revise_post: that tries it again.',
  permission: 'The holder of the account must allow this on the network, or connect it again. Then call retry.',
  media: 'Use another file with revise_post: that tries it again.',
  transient: 'Call retry.',
  platform_down: 'The network is failing. Wait, then call retry.',
  duplicate: 'The network has the same post already. Change the text with revise_post, or leave it.',
};

const canceledFor: Readonly<Record<string, string>> = {
  requested: 'Somebody canceled it.',
  client_archived: 'Its client was archived.',
  approval_rejected: 'An approver rejected it.',
  post_canceled: 'Its post was canceled.',
  account_disconnected: 'Its account was disconnected.',
  changes_requested: 'An approver asked for changes.',
  copy_replaced: 'The next copy of the same post took its place.',
};

/** Why it stands where it stands, and what to do, where no failure says so. */
const states: Readonly<Record<string, readonly [reason: string, whatToDo: string]>> = {
  awaiting_approval: [
    'A person has to approve it.',
    'pending_approvals finds the request; approval_link asks the client.',
  ],
  pending: ['It waits for its time.', 'Nothing. reschedule, revise_post and cancel work until then.'],
  handed_to_platform: [
    'Its network has it and publishes it at its time.',
    'Nothing. cancel asks the network to give it back, and reschedule to publish it at another time.',
  ],
  publishing: ['It is on its way.', 'Ask again in some seconds.'],
  processing: [
    'Its network has accepted it, and shows it once it has looked at it.',
    'Nothing: the network is being asked. Do not post it again.',
  ],
  published: ['It is out.', 'Nothing. post_performance has its figures.'],
  rate_limited: ['The network or its limits let no more through now.', 'Nothing: it is tried again by itself.'],
  outcome_unknown: [
    'Nobody knows yet whether it is out.',
    'Nothing: the network is being asked. Do not post it again.',
  ],
};

const canceledState = (reason: string | null): readonly [string, string] => [
  (reason === null ? undefined : canceledFor[reason]) ?? 'It was canceled.',
  'Nothing more of it goes out. compose_post makes a new post, if the person wants one.',
];

/** Of every target: why it stands where it stands, and what to do next. */
export const standOf = (cuts: Cuts, target: PostTarget): { readonly reason: string; readonly whatToDo: string } => {
  const problem = problemOf(cuts, target);
  if (target.undo === 'pending') {
    return {
      reason: 'Its network is asked to give it back, or to publish it at another time or with another content.',
      whatToDo: 'Ask again in some minutes.',
    };
  }
  const { status, cancelReason } = target;
  const [reason, whatToDo] =
    status === 'canceled'
      ? canceledState(cancelReason)
      : (states[status] ?? [`It is ${status}.`, 'post_status has its post.']);
  return problem === null || status === 'canceled'
    ? { reason, whatToDo }
    : { reason: problem.message, whatToDo: problem.whatToDo };
};

const remedyOf = ({ category, code, retryable }: Failure, status: string): string => {
  if (status === 'outcome_unknown') {
    if (code === 'outcome_not_askable') {
      return 'Ask the person to look at the account: only they can see whether the post is out. The operator of the service records what they find. Do not post it again.';
    }
    return 'Nothing: the network is being asked whether the post is out. Do not post it again.';
  }
  return remedies[category] ?? (retryable ? 'Call retry.' : 'Tell the person the message: it needs a change.');
};

const problemOf = (cuts: Cuts, { failure, status, retryAt }: PostTarget): TargetOut['problem'] => {
  if (failure === null) return null;
  const { code, message, platformMessage } = failure;
  const words =
    platformMessage === null
      ? message
      : `${message} The network says: ${cuts.text('words of the network', platformMessage, 300)}`;
  return { code, message: words, whatToDo: remedyOf(failure, status), retryAt };
};

/** Those that need somebody first, since an answer may not list all. */
const urgency = ['failed', 'outcome_unknown', 'rate_limited', 'awaiting_approval'];
const rank = ({ status }: PostTarget): number => (urgency.indexOf(status) + urgency.length + 1) % (urgency.length + 1);

export const shownTargets = (
  cuts: Cuts,
  targets: readonly PostTarget[],
  names: ReadonlyMap<string, string> = new Map(),
): TargetOut[] =>
  cuts
    .rows(
      'targets',
      [...targets].sort((a, b) => rank(a) - rank(b)),
      maxTargetsShown,
    )
    .map((target) => ({
      targetId: target.id,
      accountId: target.accountId,
      account: names.get(target.accountId) ?? null,
      platform: target.platform,
      status: target.status,
      scheduledAt: target.scheduledAt,
      localTime: localTime(target.scheduledAt, target.timezone),
      publishedAt: target.publishedAt,
      permalink: target.permalink,
      undo: target.undo,
      problem: problemOf(cuts, target),
    }));

export const targetLine = (target: TargetOut) => {
  const { platform, account, status, localTime: time, targetId, permalink, undo, problem } = target;
  const back = undo === 'pending' ? ', being taken back or changed at the network' : '';
  const name = account === null ? '' : ` ${JSON.stringify(account)}`;
  const out = permalink === null ? '' : `, ${permalink}`;
  const wrong = problem === null ? '' : `: ${problem.message} What to do: ${problem.whatToDo}`;
  return `- ${platform}${name} (targetId ${targetId}): ${status}${back}, ${time}${out}${wrong}`;
};

/** Names of the accounts of a client, or of the workspace; none where the credential may not read accounts. */
export const accountNames = async (call: ToolCall, clientId?: string): Promise<ReadonlyMap<string, string>> => {
  if (!call.may('accounts.read')) return new Map();
  try {
    const { data } = await call.invoke<Account[]>('listAccounts', { query: { clientId, limit: 100 } });
    return new Map(data.flatMap(({ id, username }) => (username === null ? [] : [[id, username] as const])));
  } catch (error) {
    // The role, or the allowance: the names are a convenience, and the post stands without them.
    if (error instanceof Rejection) return new Map();
    throw error;
  }
};

export const DecisionOut = Nullable(
  Type.Object({
    approvalId: Type.String(),
    status: Type.String(),
    decidedBy: Type.String(),
    decidedAt: Type.String(),
    comment: Nullable(Type.String()),
  }),
  'What an approver decided last, maybe about a former content.',
);
type DecisionOut = Static<typeof DecisionOut>;

type Decision = Post['lastDecision'];

export const decisionOf = (decision: Decision): DecisionOut => {
  if (decision === null) return null;
  const { decidedBy, ...more } = decision;
  return { ...more, decidedBy: `${decidedBy.type} ${decidedBy.id}` };
};

/** The comment of an approver is shown whole. */
const maxComment = 2_000;

export const decisionLine = (cuts: Cuts, decision: Decision): string | null => {
  if (decision === null) return null;
  const { status, decidedBy, decidedAt, comment } = decision;
  const said = comment === null ? '' : `: ${cuts.quoted('comment', comment, maxComment)}`;
  return `Last decision: ${status} by ${decidedBy.type} ${decidedBy.id} at ${decidedAt}${said}`;
};

export const PendingOut = Nullable(
  Type.Object({ approvalId: Type.String(), content: Type.String() }),
  'What a revise asks for and nobody has approved yet: it does not go out.',
);

type Pending = Post['pendingRevision'];

export const pendingOf = (cuts: Cuts, pending: Pending): Static<typeof PendingOut> =>
  pending === null
    ? null
    : { approvalId: pending.approvalId, content: cuts.text('asked-for content', pending.content, 1000) };

export const pendingLine = (cuts: Cuts, pending: Pending): string | null =>
  pending === null
    ? null
    : `A revise waits for the approval ${pending.approvalId}, and does not go out before: ${cuts.quoted('asked-for content', pending.content, 200)}`;

/** Whether an approver asked for changes, and nobody has submitted the post since. */
const isSentBack = ({ lastDecision, approvalId }: Pick<Post, 'lastDecision' | 'approvalId'>): boolean =>
  lastDecision?.status === 'changes_requested' && lastDecision.approvalId === approvalId;

const waiting = new Set([
  'pending',
  'handed_to_platform',
  'publishing',
  'processing',
  'rate_limited',
  'outcome_unknown',
]);

/** What a caller should do about a post. */
export const nextStepOf = (post: Pick<Post, 'status' | 'targets' | 'lastDecision' | 'approvalId'>): string => {
  const { status, targets } = post;
  if (isSentBack(post) && status === 'draft') {
    return 'An approver asked for changes: tell the person the comment, change it with revise_post, then publish_draft.';
  }
  if (isSentBack(post) && status === 'pending_approval') {
    return 'An approver asked for changes: tell the person the comment. What is not out waits until revise_post changes it.';
  }
  if (status === 'draft')
    return 'It is a draft, which nobody sees. publish_draft sends it out once the person wants that.';
  if (targets.some((one) => one.status === 'failed')) {
    return 'Some targets failed: each says what to do. retry sends them again, cancel gives them up.';
  }
  if (status === 'pending_approval' || targets.some((one) => one.status === 'awaiting_approval')) {
    return 'It waits for an approval: the person decides with decide_approval, or the client through approval_link.';
  }
  if (targets.some((one) => waiting.has(one.status))) {
    return 'Ask post_status after its time to learn how it went. reschedule and cancel work until then.';
  }
  if (status === 'canceled') return 'It is canceled: nothing more of it goes out.';
  return 'It is settled. post_performance has its figures, once the networks report them.';
};
