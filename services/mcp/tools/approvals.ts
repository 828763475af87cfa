import { type Static, Type } from 'typebox';
import type { ApprovalSummary as SummarySchema } from '#schemas/http/approval.ts';
import type { ApprovalLink as LinkSchema } from '#schemas/http/approval-link.ts';
import { invalid } from '#services/api/call/refusal.ts';
import type { ToolCall } from '../call.ts';
import { publishes, reads, tool } from '../tool.ts';
import {
  Args,
  Bare,
  Id,
  joined,
  Maybe,
  Mode,
  many,
  moreOf,
  Next,
  NextCursor,
  Nullable,
  PlainKey,
  paging,
  Replayed,
  replayedWords,
  Text,
} from '../words.ts';
import { type Approval, pageOfApproval } from './approval-words.ts';
import { defined } from './composing.ts';
import { LinkAction, linkOutput, linksAnswer, madeLink, named } from './links.ts';

/** What waits for a decision, all that it covers, and the decision. */

type Summary = Static<typeof SummarySchema>;

const Waiting = Type.Object({
  approvalId: Type.String(),
  postId: Type.String(),
  clientId: Type.String(),
  status: Type.String(),
  requestedBy: Type.String(),
  scheduledAt: Type.String(),
  content: Type.String({ description: 'The beginning of the text: too little to decide about.' }),
  differs: Type.Array(Type.String(), { description: 'Networks with a text, media or settings of their own.' }),
  media: Type.Integer(),
  platforms: Type.Array(Type.String()),
});

const waitingOf = ({ cuts }: ToolCall, { id, post, requestedBy, ...approval }: Approval): Static<typeof Waiting> => ({
  approvalId: id,
  postId: approval.postId,
  clientId: approval.clientId,
  status: approval.status,
  requestedBy: `${requestedBy.type} ${requestedBy.id}`,
  scheduledAt: approval.scheduledAt,
  content: cuts.text('content', post.content, maxExcerpt),
  differs: post.variants.map(({ platform }) => platform),
  media: post.mediaIds.length,
  platforms: [...new Set(post.targets.map(({ platform }) => platform))],
});

const maxExcerpt = 200;

const line = ({ approvalId, postId, scheduledAt, content, media, platforms }: Static<typeof Waiting>): string =>
  `- approvalId ${approvalId} (postId ${postId}): ${platforms.join(', ')}, due ${scheduledAt}, ${many(media, 'file')}: ${JSON.stringify(content)}`;

export const pendingApprovals = tool({
  name: 'pending_approvals',
  title: 'Posts that wait for approval',
  description:
    'The posts that wait until a person approves them, newest first, with the beginning of the text. show_approval has everything that would go out.',
  scopes: ['approvals.read'],
  hints: reads,
  input: Args({
    clientId: Maybe(Id()),
    postId: Maybe(Id('Only this post.')),
    // Each row is read with its post.
    limit: Maybe(Type.Integer({ minimum: 1, maximum: 10, description: 'Rows to answer. Default 5.' })),
    ...Bare({ cursor: paging.cursor }),
  }),
  output: Type.Object({ mode: Mode, approvals: Type.Array(Waiting), nextCursor: NextCursor, nextStep: Next }),
  run: async (call, { clientId, postId, limit = 5, cursor }) => {
    const query = { status: ['pending'], clientId, postId, limit, cursor };
    const { data, page } = await call.invoke<Summary[]>('listApprovals', { query });
    const approvals: Static<typeof Waiting>[] = [];
    for (const { id } of data) {
      approvals.push(waitingOf(call, (await call.invoke<Approval>('getApproval', { params: { id } })).data));
    }
    const nextCursor = page?.nextCursor ?? null;
    const nextStep =
      approvals.length === 0
        ? 'Nothing waits for approval.'
        : 'show_approval with an approvalId has all that would go out, for the person who decides.';
    const text = joined(
      `${many(approvals.length, 'post')} waiting (${call.mode}).`,
      ...approvals.map(line),
      moreOf(nextCursor),
      nextStep,
    );
    return { text, data: { mode: call.mode, approvals, nextCursor, nextStep } };
  },
});

export const showApproval = tool({
  name: 'show_approval',
  title: 'All that a decision covers',
  description:
    'Everything that goes out if the request is approved: accounts, each text, title, file with its hash, alt text, cover, first comment and setting of each network, and what is not sent. Show the person all of it before decide_approval. A long post comes in pages: the last page has the contentHash that decide_approval needs.',
  scopes: ['approvals.read'],
  hints: reads,
  input: Args({
    approvalId: Id('The request, from pending_approvals or post_status.'),
    cursor: Maybe(Text(200, 'The `nextCursor` of the page before.')),
  }),
  output: Type.Object({
    mode: Mode,
    approvalId: Type.String(),
    postId: Type.String(),
    clientId: Type.String(),
    status: Type.String(),
    requestedBy: Type.String(),
    comment: Nullable(Type.String()),
    lines: Type.Array(Type.String(), { description: 'What it covers, in full: nothing in quotation marks is cut.' }),
    page: Type.Integer(),
    pages: Type.Integer(),
    contentHash: Nullable(Type.String(), 'For decide_approval; null: there are more pages.'),
    nextCursor: NextCursor,
    nextStep: Next,
  }),
  run: async (call, { approvalId, cursor }) => {
    const { data: approval } = await call.invoke<Approval>('getApproval', { params: { id: approvalId } });
    const { lines, page, pages, nextCursor } = pageOfApproval(approval, cursor);
    const { postId, clientId, status, requestedBy, comment } = approval;
    const contentHash = nextCursor === null ? approval.contentHash : null;
    const nextStep =
      nextCursor !== null
        ? `This is page ${page} of ${pages}: call show_approval again with cursor ${nextCursor} before anybody decides.`
        : status === 'pending'
          ? 'decide_approval with this contentHash, once the person has seen all of it and decided.'
          : `Nobody can decide about it any more: it is ${status}.`;
    const text = joined(
      `The request ${approvalId} for the post ${postId} is ${status} (${call.mode}), page ${page} of ${pages}.`,
      ...lines,
      comment === null ? null : `The approver wrote: ${JSON.stringify(comment)}`,
      contentHash === null ? null : `contentHash: ${contentHash}`,
      nextStep,
    );
    const requester = `${requestedBy.type} ${requestedBy.id}`;
    const about = { approvalId, postId, clientId, status, requestedBy: requester, comment };
    const data = { mode: call.mode, ...about, lines: [...lines], page, pages, contentHash, nextCursor, nextStep };
    return { text, data };
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
  request_changes: 'The author can change it with revise_post; a draft then goes out by publish_draft.',
} as const;

export const decideApproval = tool({
  name: 'decide_approval',
  title: 'Decide about a post',
  description:
    'Approves a post that waits, rejects it, or asks its author for changes, in the name of the person behind this credential. Do it only when this person has seen all of show_approval and told you the decision: approving may publish it at once. Reject and request_changes need a comment for the author.',
  scopes: ['approvals.decide'],
  hints: publishes,
  input: Args({
    approvalId: Id('The request, from pending_approvals.'),
    decision: Type.Enum(['approve', 'reject', 'request_changes'], {
      description: 'reject: canceled; request_changes: back to the author.',
    }),
    contentHash: Maybe(Text(64, 'From the last page of show_approval: what the person has seen. Needed.')),
    comment: Maybe(Text(2000, 'A word to the author. Needed to reject and to ask for changes.')),
    idempotencyKey: PlainKey,
  }),
  output: Type.Object({
    mode: Mode,
    approvalId: Type.String(),
    postId: Type.String(),
    status: Type.String(),
    decidedAt: Nullable(Type.String()),
    comment: Nullable(Type.String()),
    replayed: Replayed,
    nextStep: Next,
  }),
  run: async (call, { approvalId, decision, contentHash, comment }) => {
    if (contentHash === undefined) {
      throw invalid('/contentHash', 'required', 'is missing: the last page of show_approval has it');
    }
    const body = { contentHash, ...(comment === undefined ? {} : { comment }) };
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

type Link = Static<typeof LinkSchema>;

const linkLine = ({ linkId, expiresAt, isRevoked, decidedAt, createdBy }: Link): string =>
  `linkId ${linkId}: until ${expiresAt}${isRevoked ? ', revoked' : ''}${decidedAt === null ? '' : `, decided ${decidedAt}`}, by ${createdBy.type} ${createdBy.id}`;

export const approvalLink = tool({
  name: 'approval_link',
  title: 'A link for the client to decide',
  description:
    'Makes a page on which a guest, such as the client, sees a post that waits for approval and decides, without an account. Give the address to the person, who sends it: who has it can decide. post_status tells later what the guest decided and wrote.',
  scopes: ['approvals.decide'],
  hints: { ...publishes, idempotentHint: false },
  input: Args({
    approvalId: Id('From pending_approvals.'),
    action: LinkAction,
    ...Bare({ linkId: Maybe(Id()), expiresInHours: Maybe(Type.Integer({ minimum: 1, maximum: 720 })) }),
    idempotencyKey: PlainKey,
  }),
  output: linkOutput({ approvalId: Type.String() }),
  run: async (call, { approvalId, action = 'create', linkId, expiresInHours }) => {
    const id = approvalId;
    if (action === 'list') {
      const { data } = await call.invoke<Link[]>('listApprovalLinks', { params: { id } });
      return linksAnswer(call, { approvalId }, data.map(linkLine));
    }
    if (action === 'revoke') {
      const params = { id, linkId: named('linkId', linkId) };
      const { data } = await call.invoke<Link>('revokeApprovalLink', { params });
      return linksAnswer(call, { approvalId }, [linkLine(data)]);
    }
    const body = defined({ expiresInHours });
    const asked = { params: { id }, body, key: call.key('create') };
    const { data, replayed } = await call.invoke<Link>('createApprovalLink', asked);
    const nextStep = 'Give the address to the person. post_status has the decision and the comment once it is made.';
    const text = `The page for request ${approvalId} (${call.mode}), until ${data.expiresAt}: ${data.url ?? 'it has expired or was revoked'}`;
    return madeLink(call, { approvalId }, { ...data, id: data.linkId, replayed, text, nextStep });
  },
});
