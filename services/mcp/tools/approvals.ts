import { type Static, Type } from 'typebox';
import type { Approval as ApprovalSchema, ApprovalSummary as SummarySchema } from '#schemas/http/approval.ts';
import { publishes, reads, tool } from '../tool.ts';
import {
  Args,
  Id,
  IdempotencyKey,
  joined,
  Maybe,
  Mode,
  many,
  moreOf,
  Next,
  NextCursor,
  Nullable,
  quoted,
  Replayed,
  replayedWords,
  Text,
} from '../words.ts';

/** What waits for a decision, and the decision. */

type Summary = Static<typeof SummarySchema>;
type Approval = Static<typeof ApprovalSchema>;

const Waiting = Type.Object({
  approvalId: Type.String(),
  postId: Type.String(),
  clientId: Type.String(),
  status: Type.String(),
  requestedBy: Type.String({ description: 'Who asked: the kind of actor and its id.' }),
  scheduledAt: Type.String({ description: 'When the first target is due.' }),
  content: Type.String({ description: 'The text to decide about, cut at 2,000 characters.' }),
  differs: Type.Array(Type.String(), { description: 'Networks with a text or media of their own.' }),
  media: Type.Integer({ description: 'Files that go with it.' }),
  platforms: Type.Array(Type.String()),
});

const waitingOf = ({ id, post, requestedBy, ...approval }: Approval): Static<typeof Waiting> => ({
  approvalId: id,
  postId: approval.postId,
  clientId: approval.clientId,
  status: approval.status,
  requestedBy: `${requestedBy.type} ${requestedBy.id}`,
  scheduledAt: approval.scheduledAt,
  content: [...post.content].slice(0, 2000).join(''),
  differs: post.variants.map(({ platform }) => platform),
  media: post.mediaIds.length,
  platforms: [...new Set(post.targets.map(({ platform }) => platform))],
});

const line = ({ approvalId, postId, scheduledAt, content, media, platforms }: Static<typeof Waiting>): string =>
  `- approvalId ${approvalId} (postId ${postId}): ${platforms.join(', ')}, due ${scheduledAt}, ${many(media, 'file')}: ${quoted(content, 300)}`;

export const pendingApprovals = tool({
  name: 'pending_approvals',
  title: 'Posts that wait for approval',
  description:
    'The posts that wait until a person approves them, with the text to decide about, newest first. Show the person exactly this text before decide_approval.',
  scopes: ['approvals.read'],
  hints: reads,
  input: Args({
    clientId: Maybe(Id('Only posts of this client.')),
    postId: Maybe(Id('Only this post.')),
    // Each row is read with its post.
    limit: Maybe(Type.Integer({ minimum: 1, maximum: 10, description: 'Rows to answer. Default 5.' })),
    cursor: Maybe(Text(1000, 'The `nextCursor` of the answer before, for the rows after it.')),
  }),
  output: Type.Object({ mode: Mode, approvals: Type.Array(Waiting), nextCursor: NextCursor, nextStep: Next }),
  run: async (call, { clientId, postId, limit = 5, cursor }) => {
    const query = { status: ['pending'], clientId, postId, limit, cursor };
    const { data, page } = await call.invoke<Summary[]>('listApprovals', { query });
    const approvals: Static<typeof Waiting>[] = [];
    for (const { id } of data) {
      approvals.push(waitingOf((await call.invoke<Approval>('getApproval', { params: { id } })).data));
    }
    const nextCursor = page?.nextCursor ?? null;
    const nextStep =
      approvals.length === 0
        ? 'Nothing waits for approval.'
        : 'decide_approval, once the person has seen the text and decided.';
    const text = joined(
      `${many(approvals.length, 'post')} waiting (${call.mode}).`,
      ...approvals.map(line),
      moreOf(nextCursor),
      nextStep,
    );
    return { text, data: { mode: call.mode, approvals, nextCursor, nextStep } };
  },
});

const operations = {
  approve: 'approveApproval',
  reject: 'rejectApproval',
  request_changes: 'requestApprovalChanges',
} as const;

const consequence = {
  approve: 'It goes out at its time; a target whose time has passed goes out at once.',
  reject: 'Nothing of it goes out. A new post is needed to publish this elsewhere or later.',
  request_changes:
    'The author can change it: as a draft with update_draft, or with revise_post where some of it is out.',
} as const;

export const decideApproval = tool({
  name: 'decide_approval',
  title: 'Decide about a post',
  description:
    'Approves a post that waits, rejects it, or asks its author for changes, in the name of the person behind this credential. Do it only when this person has seen the text and told you the decision: approving may publish it at once. Reject and request_changes need a comment for the author.',
  scopes: ['approvals.decide'],
  hints: publishes,
  input: Args({
    approvalId: Id('The request, from pending_approvals.'),
    decision: Type.Enum(['approve', 'reject', 'request_changes'], {
      description: 'approve: goes out; reject: canceled; request_changes: back to the author.',
    }),
    comment: Maybe(Text(2000, 'A word to the author. Needed to reject and to ask for changes.')),
    idempotencyKey: IdempotencyKey,
  }),
  output: Type.Object({
    mode: Mode,
    approvalId: Type.String(),
    postId: Type.String(),
    status: Type.String(),
    decidedAt: Nullable(Type.String(), 'When it was decided.'),
    comment: Nullable(Type.String(), 'Null: none.'),
    replayed: Replayed,
    nextStep: Next,
  }),
  run: async (call, { approvalId, decision, comment }) => {
    const body = comment === undefined ? {} : { comment };
    const asked = { params: { id: approvalId }, body, key: call.key('change') };
    const { data, replayed } = await call.invoke<Approval>(operations[decision], asked);
    const nextStep = `${consequence[decision]} post_status has the post.`;
    const text = joined(
      `The request ${approvalId} is ${data.status} (${call.mode}), post ${data.postId}.`,
      replayedWords(replayed),
      nextStep,
    );
    const { postId, status, decidedAt, comment: kept } = data;
    return {
      text,
      data: { mode: call.mode, approvalId, postId, status, decidedAt, comment: kept, replayed, nextStep },
    };
  },
});
