import { type ApprovalState, approval, type Decision } from '#domain/approval.ts';
import { isBeyondApproval, newestBody, type PostState, post } from '#domain/post/post.ts';
import { superseded } from '#domain/post/post-approval.ts';
import { rowOf } from '#projections/engine/model.ts';
import { approvals } from '#projections/models/approvals.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { Approval, ApprovalApprove, ApprovalRefuse } from '#schemas/http/approval.ts';
import { IdParams } from '#schemas/http/common.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import { type Call, type One, operation } from '../call/operation.ts';
import { invalid, notFound } from '../call/refusal.ts';
import { lastOf, writtenRow } from '../call/rows.ts';
import { requireWordForPlan } from '../posts/restore-word.ts';
import { approvalsTag, decidedExample } from './examples.ts';
import { loadRequest, showApproval } from './show.ts';

/** A person decides about a request for approval. */

type Deciding = Call<{ readonly id: string }, unknown, { readonly comment?: string; readonly contentHash?: string }>;

const postOf = (state: ApprovalState): string => {
  if (state.status === 'none') throw notFound('approval');
  return state.about.postId;
};

/** A guest cannot look at the account: what they release waits for a member's word at its time. */
const requireWordForRelease = async (call: Deciding, state: ApprovalState): Promise<void> => {
  const { state: about, events } = await call.deps.store.load(post, postOf(state));
  if (about.status === 'live') await requireWordForPlan(call, events, newestBody(about), about.plan.targets);
};

const asksFor = (state: PostState, id: string): boolean => state.status === 'live' && state.approval?.id === id;

/** Whether the post followed this decision. One that asks for changes changes no post of which a target is out. */
const hasFollowed = ({ state, events }: Loaded<PostState>, id: string, decided: DecodedEvent): boolean =>
  events.some(({ metadata }) => metadata.$causationId === decided.id) ||
  (decided.type === 'ApprovalChangesRequested' && asksFor(state, id));

/** A request that its post has left behind is withdrawn. @throws Rejection `approval_superseded` */
export const requireInForce = async (
  { deps, positions }: Pick<Call, 'deps' | 'positions'>,
  id: string,
  state: ApprovalState,
): Promise<void> => {
  if (state.status !== 'pending') return;
  const { state: about } = await deps.store.load(post, postOf(state));
  if (asksFor(about, id) && !isBeyondApproval(about)) return;
  await tendApprovals(deps.store, postOf(state), { positions });
  throw superseded();
};

/** @throws Refusal for a hash that is not that of the request */
const requireSeen = (state: ApprovalState, seen: string | undefined): void => {
  if (seen === undefined || state.status === 'none' || state.about.contentHash === seen) return;
  const message = 'is not that of this request: read GET /approvals/{id}, or show_approval over MCP, before deciding';
  throw invalid('/contentHash', 'mismatch', message);
};

/**
 * The decision is appended to the request, then the post follows, then its targets. If we die before the append,
 * nothing was decided; after it, the caller's repeat, the outcomes consumer or the sweeper carries the decision out.
 * @throws Rejection `approval_not_pending` for every decider but the first, `approval_superseded` where the post has
 * moved on: the request is then withdrawn
 */
const decideApproval = async (call: Deciding, decision: Decision): Promise<One<unknown>> => {
  const { deps, params, positions, principal } = call;
  const { comment = null } = call.body;
  const acted = await call.stream(approval).act({
    load: () => loadRequest(call),
    command: () => ({ type: 'Decide', decision, decidedBy: principal.actor, comment }),
    rule: async ({ state }) => {
      requireSeen(state, call.body.contentHash);
      await requireInForce({ deps, positions }, params.id, state);
      if (decision === 'approve') await requireWordForRelease(call, state);
    },
    partitionKey: postOf,
  });
  faultPoint('approval:after-decision');
  const postId = postOf(acted.state);
  await tendApprovals(deps.store, postId, { positions });
  if (!hasFollowed(await deps.store.load(post, postId), params.id, lastOf(acted.events))) throw superseded();
  const row = writtenRow(rowOf(approvals, acted.events));
  return { data: await showApproval(call, row, acted.state), revision: acted.revision, replayed: acted.replayed };
};

export const approveApproval = operation({
  id: 'approveApproval',
  method: 'POST',
  path: '/approvals/{id}/approve',
  tag: approvalsTag,
  summary: 'Approve a post: it goes out as it was shown',
  description:
    'Exactly the content that the request shows is released. A target whose time has passed goes out at once. Of two people who decide, the first decides and the other gets `approval_not_pending` with `decidedBy`. Where the post was changed meanwhile, the request is withdrawn and the answer is `approval_superseded`.',
  scope: 'approvals.decide',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: ApprovalApprove,
  bodyOptional: true,
  answer: Approval,
  codes: ['approval_not_pending', 'approval_superseded', 'restore_unconfirmed'],
  example: { body: { comment: 'Lovely.' }, data: decidedExample('approved', 'Lovely.') },
  handle: (call) => decideApproval(call, 'approve'),
});

export const rejectApproval = operation({
  id: 'rejectApproval',
  method: 'POST',
  path: '/approvals/{id}/reject',
  tag: approvalsTag,
  summary: 'Reject a post: its held targets are canceled',
  description:
    'No target that waits for this approval goes out any more. A new post is needed to publish the content elsewhere, or later.',
  scope: 'approvals.decide',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: ApprovalRefuse,
  answer: Approval,
  codes: ['approval_not_pending', 'approval_superseded'],
  example: { body: { comment: 'Off brand.' }, data: decidedExample('rejected', 'Off brand.') },
  handle: (call) => decideApproval(call, 'reject'),
});

export const requestApprovalChanges = operation({
  id: 'requestApprovalChanges',
  method: 'POST',
  path: '/approvals/{id}/request-changes',
  tag: approvalsTag,
  summary: 'Ask for changes: the post becomes a draft again',
  description:
    'The held targets are canceled, and the post is a draft again: PATCH /posts/{id} changes it, and POST /posts/{id}/publish makes a new plan and asks anew. Of a post that was approved before and then revised, the changed targets stay held, since others may be out: POST /posts/{id}/revise asks anew.',
  scope: 'approvals.decide',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: ApprovalRefuse,
  answer: Approval,
  codes: ['approval_not_pending', 'approval_superseded'],
  example: {
    body: { comment: 'Please mention the opening hours.' },
    data: decidedExample('changes_requested', 'Please mention the opening hours.'),
  },
  handle: (call) => decideApproval(call, 'request_changes'),
});
