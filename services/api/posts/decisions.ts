import { type ApprovalState, approval } from '#domain/approval.ts';
import { approvalIdOf } from '#domain/ids.ts';
import { contentHashOf } from '#domain/post/content.ts';
import type { PostState } from '#domain/post/post.ts';
import { lastDecision, type PostDecision } from '#projections/models/approvals.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { instantOf } from '#schemas/common.ts';
import type { Warning } from '#schemas/http/common.ts';
import type { Plan, PostBody } from '#schemas/post.ts';
import type { Call } from '../call/operation.ts';
import { Refusal } from '../call/refusal.ts';

/**
 * What approvers decided about a post, for its author. The stream of a request is the truth about its decision; an answer
 * to a command tells of decisions up to its last event, so that a repeat of the call answers the same.
 */

type Deciding = Pick<Call, 'deps' | 'workspaceId'>;
type Events = readonly DecodedEvent[];

/** A request and its predecessor: one of both was decided last, but for posts that are revised again and again. */
const readFromStreams = 2;

const decisionOf = (approvalId: string, state: ApprovalState, asOf: string): PostDecision | null => {
  if (state.status === 'none' || state.decided === null || state.decided.at > asOf) return null;
  const { by: decidedBy, at: decidedAt, comment } = state.decided;
  // Only what was approved is withdrawn after its decision.
  const status = state.status === 'pending' || state.status === 'withdrawn' ? 'approved' : state.status;
  return { approvalId, status, decidedBy, decidedAt, comment };
};

const lastOf = async ({ deps, workspaceId }: Deciding, postId: string, requests: number, asOf: string) => {
  for (let request = requests; request > Math.max(0, requests - readFromStreams); request -= 1) {
    const id = approvalIdOf(postId, request);
    const found = decisionOf(id, (await deps.store.load(approval, id)).state, asOf);
    if (found !== null) return found;
  }
  return requests > readFromStreams ? lastDecision(deps.knex, workspaceId, postId, asOf) : null;
};

/** The answer to a command on a post, with the last decision about it. */
export const withDecision = async <Shown extends { readonly id: string }>(
  call: Deciding,
  shown: Shown,
  { state, events }: { readonly state: PostState; readonly events: Events },
): Promise<Shown & { readonly lastDecision: PostDecision | null }> => {
  const last = events.at(-1);
  const asOf = last === undefined ? '' : instantOf(last.metadata);
  const requests = state.status === 'none' ? 0 : state.requests;
  return { ...shown, lastDecision: await lastOf(call, shown.id, requests, asOf) };
};

interface Content {
  readonly body: PostBody;
  readonly accounts: Pick<Plan['targets'][number], 'accountId'>[];
}

/** Equal for equal contents. The bytes of a file never change, so that its id stands for them. */
const likenessOf = ({ body, accounts }: Content): string => contentHashOf(body, accounts, () => null);

/** The content that these events last planned or revised. */
const contentOf = (events: Events): Content | null => {
  const written = events.findLast(({ type }) => type === 'PostScheduled' || type === 'PostRevised');
  const planned = events.findLast(({ type }) => type === 'PostScheduled');
  if (written === undefined || planned === undefined) return null;
  const { body } = written.data as { readonly body: PostBody };
  return { body, accounts: (planned.data as { readonly plan: Plan }).plan.targets };
};

/**
 * The decision by which an approver asked for changes of this very content, as the events before it leave the post; null:
 * the content has changed since, or nobody asked.
 */
const sentBack = async ({ deps }: Deciding, before: Events, content: Content, asOf: string) => {
  const asked = before.findLast(({ type }) => type === 'PostSubmittedForApproval');
  if (asked === undefined) return null;
  const former = contentOf(before.filter(({ revision }) => revision < asked.revision));
  if (former === null || likenessOf(former) !== likenessOf(content)) return null;
  const { approvalId } = asked.data as { readonly approvalId: string };
  const found = decisionOf(approvalId, (await deps.store.load(approval, approvalId)).state, asOf);
  return found?.status === 'changes_requested' ? found : null;
};

/**
 * For a draft before it is published.
 * @throws Refusal `changes_requested` where an approver asked for changes of the content that would go out
 */
export const requireChanged = async (call: Deciding & Pick<Call, 'now'>, events: Events, content: Content) => {
  const decision = await sentBack(call, events, content, call.now);
  if (decision === null) return;
  const detail = `An approver asked for changes, and the content is still the same. The comment: ${JSON.stringify(decision.comment)}`;
  throw new Refusal('changes_requested', detail, { extra: { approvalId: decision.approvalId } });
};

/** The warning of a plan or a revise with the content for which an approver has asked for changes. */
export const repeatWarnings = async (call: Deciding, id: string, events: Events): Promise<readonly Warning[]> => {
  const written = events.findLast(({ type }) => type === 'PostScheduled' || type === 'PostRevised');
  const content = contentOf(events);
  if (written === undefined || content === null) return [];
  const before = events.filter(({ revision }) => revision < written.revision);
  const decision = await sentBack(call, before, content, instantOf(written.metadata));
  if (decision === null) return [];
  const message = 'An approver asked for changes, and the content is still the same: `lastDecision` has the comment.';
  return [{ code: 'changes_requested', id, message }];
};
