import { type ApprovalState, approval } from '#domain/approval.ts';
import { Rejection } from '#domain/decider.ts';
import { isBeyondApproval, type PostState, post } from '#domain/post/post.ts';
import type { DecidePost } from '#domain/post/post-approval.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { timeOf } from '#runtime/eventing/codec.ts';
import type { CommandContext, DomainStore, Loaded, Positions } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { instantOf } from '#schemas/common.ts';
import type { Plan, PostEvent } from '#schemas/post.ts';
import type { TargetTime } from '#schemas/target.ts';
import { fanOut } from '../fan-out.ts';
import { recordOutcomesOf } from './outcomes.ts';

/**
 * Brings a post and its requests for approval to agree: the request that its stream asks for is made, a decision is
 * carried out on the post and then on its targets, and a request for a content that no longer goes out is withdrawn. Any
 * process may run this any number of times: each append follows from a stored event, whose actor and time it bears, and a
 * step that is done yields no event. If we die between two steps, the outcomes consumer or the sweeper takes the next
 * one, and until then the targets stay held.
 */

type Submitted = Extract<PostEvent, { readonly type: 'PostSubmittedForApproval' }>['data'];

interface Given {
  readonly positions?: Positions;
}

/** The caller's command, as a consequence of that event alone. */
const following = ({ id, metadata }: DecodedEvent): CommandContext => ({
  workspaceId: metadata.workspaceId,
  actor: metadata.actor,
  correlationId: metadata.$correlationId,
  causationId: id,
  causeEventId: id,
  commandId: metadata.commandId,
  ...timeOf(metadata),
});

/** When the first target was due as the post was submitted: by the revise right before, else by the plan. */
const dueOf = (events: readonly DecodedEvent[], asked: DecodedEvent): string => {
  const before = events.filter(({ revision }) => revision < asked.revision);
  const revise = before.at(-1);
  const times = revise?.type === 'PostRevised' ? (revise.data.times as readonly TargetTime[] | null) : null;
  const plan = before.findLast(({ type }) => type === 'PostScheduled')?.data.plan as Plan | undefined;
  const named = new Set((asked.data as unknown as Submitted).targetIds);
  const planned = plan?.targets.filter(({ targetId }) => named.has(targetId)) ?? [];
  const [first = instantOf(asked.metadata)] = (times ?? planned).map(({ dueAt }) => dueAt).sort();
  return first;
};

const makeRequest = (
  store: DomainStore,
  { events }: Loaded<PostState>,
  postId: string,
  asked: DecodedEvent,
  given: Given,
): Promise<Loaded<ApprovalState>> => {
  const data = asked.data as unknown as Submitted;
  const { clientId } = (events.find((one) => 'clientId' in one.data) ?? asked).data as { readonly clientId: string };
  const about = {
    postId,
    clientId,
    request: data.request,
    postRevision: asked.revision,
    contentHash: data.hash,
    requestedBy: data.submittedBy,
    scheduledAt: dueOf(events, asked),
  };
  return execute(store, approval, data.approvalId, { type: 'Request', about }, following(asked), {
    partitionKey: postId,
    ...given,
  });
};

const commandOf = (
  approvalId: string,
  { status, about, decided: found }: Exclude<ApprovalState, { status: 'none' }>,
): DecidePost | null => {
  if (found === null) return null;
  const decided = { by: found.by, comment: found.comment };
  if (status === 'approved') return { type: 'Release', approvalId, hash: about.contentHash, decided };
  if (status === 'rejected') return { type: 'Reject', approvalId };
  return status === 'changes_requested' ? { type: 'ReturnToDraft', approvalId, decided } : null;
};

const decisionTypes = ['ApprovalApproved', 'ApprovalRejected', 'ApprovalChangesRequested'];

/** @returns the post with what this run appended to it */
const carryOut = async (
  store: DomainStore,
  postId: string,
  approvalId: string,
  { state, events }: Loaded<ApprovalState>,
  given: Given,
): Promise<Loaded<PostState> | null> => {
  const decision = events.find(({ type }) => decisionTypes.includes(type));
  const command = state.status === 'none' ? null : commandOf(approvalId, state);
  if (command === null || decision === undefined) return null;
  // A return to draft cancels the whole plan: every target of it must exist before.
  if (command.type === 'ReturnToDraft') await fanOut(store, postId, following(decision), given);
  try {
    const written = await execute(store, post, postId, command, following(decision), given);
    const { post: fanned, targets } = await fanOut(store, postId, following(decision), { ...given, loaded: written });
    if (command.type !== 'Reject') return fanned;
    // The person who rejected it reads next what became of the post.
    const at = () => Date.parse(decision.metadata.occurredAt);
    return await recordOutcomesOf(store, postId, targets.values(), at, { ...given, loaded: fanned });
  } catch (error) {
    if (error instanceof Rejection && error.code === 'approval_superseded') return null;
    throw error;
  }
};

export const tendApprovals = async (store: DomainStore, postId: string, given: Given = {}): Promise<void> => {
  const loaded = await store.load(post, postId);
  const asked = loaded.events.filter(({ type }) => type === 'PostSubmittedForApproval');
  const newest = asked.at(-1);
  if (newest === undefined) return;
  await tendNewest(store, loaded, postId, newest, given);
  const left: (readonly [approvalId: string, next: DecodedEvent])[] = [];
  for (let at = asked.length - 2; at >= 0; at -= 1) {
    const [one, next] = asked.slice(at, at + 2) as [DecodedEvent, DecodedEvent];
    const { state } = await makeRequest(store, loaded, postId, one, given);
    if (isSettled(state)) break;
    left.unshift([(one.data as unknown as Submitted).approvalId, next]);
  }
  // The oldest first: if we die in between, those that are left stand before the newest, where the next run begins.
  for (const [approvalId, next] of left) await withdraw(store, postId, approvalId, 'post_changed', next, given);
};

const isSettled = ({ status }: ApprovalState): boolean => status !== 'pending' && status !== 'approved';

const tendNewest = async (
  store: DomainStore,
  loaded: Loaded<PostState>,
  postId: string,
  asked: DecodedEvent,
  given: Given,
): Promise<void> => {
  const { approvalId } = asked.data as unknown as Submitted;
  const request = await makeRequest(store, loaded, postId, asked, given);
  const left = (await carryOut(store, postId, approvalId, request, given)) ?? loaded;
  const { state, events } = left;
  const released = state.status === 'live' && state.approval?.id === approvalId && state.approval.status === 'released';
  const last = events.at(-1);
  if (!isSettled(request.state) && !released && isBeyondApproval(state) && last !== undefined) {
    await withdraw(store, postId, approvalId, 'post_canceled', last, given);
  }
};

const withdraw = async (
  store: DomainStore,
  postId: string,
  approvalId: string,
  reason: 'post_changed' | 'post_canceled',
  cause: DecodedEvent,
  given: Given,
): Promise<void> => {
  await execute(store, approval, approvalId, { type: 'Withdraw', reason }, following(cause), {
    partitionKey: postId,
    ...given,
  });
};
