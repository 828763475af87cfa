import { approval } from '#domain/approval.ts';
import { isBeyondApproval, post } from '#domain/post/post.ts';
import { target } from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { kindOf } from '#schemas/topics.ts';

/** Invariants of approvals at rest: what went out is what was approved, and every decision is carried out. */

type Streams = ReadonlyMap<string, readonly DecodedEvent[]>;

interface Submitted {
  readonly approvalId: string;
  readonly targetIds: readonly string[];
}

export const checkApprovals = (streams: Streams): readonly string[] => {
  const violations: string[] = [];
  for (const [stream, events] of streams) {
    const kind = kindOf(stream);
    const wrong = kind === 'target' ? ofTarget(events, streams) : kind === 'post' ? ofPost(events, streams) : [];
    violations.push(...wrong.map((what) => `${stream} ${what}: ${events.map(({ type }) => type).join(' ')}`));
  }
  return violations;
};

/** Each attempt was of a content that needed no approval, or whose request was released before. */
const ofTarget = (events: readonly DecodedEvent[], streams: Streams): readonly string[] =>
  events.flatMap(({ type }, at) => {
    if (type !== 'TargetPublishStarted') return [];
    const state = foldEvents(target, events.slice(0, at + 1));
    if (state.status === 'none') return [];
    const { postId, postRevision, targetId } = state.common;
    const itsPost = streams.get(`post-${postId}`) ?? [];
    // In the append of the plan or of the revise that holds the content.
    const next = itsPost.find(({ revision }) => revision === postRevision + 1);
    if (next?.type !== 'PostSubmittedForApproval') return [];
    const { approvalId, targetIds } = next.data as unknown as Submitted;
    const isReleased = itsPost.some((one) => one.type === 'PostReleased' && one.data.approvalId === approvalId);
    return !targetIds.includes(targetId) || isReleased ? [] : [`went out, and ${approvalId} was never released`];
  });

const ofPost = (events: readonly DecodedEvent[], streams: Streams): readonly string[] => {
  const asked = events.filter(({ type }) => type === 'PostSubmittedForApproval');
  const state = foldEvents(post, events);
  return asked.flatMap(({ data }, at) => {
    const { approvalId } = data as unknown as Submitted;
    const request = foldEvents(approval, streams.get(`approval-${approvalId}`) ?? []);
    if (request.status === 'none') return [`has no request ${approvalId}`];
    const isNewest = at === asked.length - 1;
    if (!isNewest && (request.status === 'pending' || request.status === 'approved')) {
      return [`was changed, and the request ${approvalId} is still ${request.status}`];
    }
    const known = state.status === 'live' && state.approval?.id === approvalId ? state.approval.status : null;
    if (request.status === 'approved' && known !== 'released') return [`has not followed the approval ${approvalId}`];
    // Rejected and deleted at the same moment, it is canceled already.
    const isOpen = known === 'pending' && !isBeyondApproval(state);
    if (request.status === 'rejected' && isNewest && isOpen) return [`has not followed ${approvalId}`];
    return [];
  });
};
