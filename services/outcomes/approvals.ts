import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { ApprovalEvent } from '#schemas/approval.ts';
import type { PostEvent } from '#schemas/post.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';

/**
 * Finishes what a process began and did not end: a post that was submitted and has no request yet, a decision that its
 * post does not know, a request whose post was changed or canceled.
 */

/** Types of events after which the requests of a post may lag. */
export const approvalTypes: readonly (PostEvent | ApprovalEvent)['type'][] = [
  'PostSubmittedForApproval',
  'PostTargetsChanged',
  'PostCanceled',
  'ApprovalApproved',
  'ApprovalRejected',
  'ApprovalChangesRequested',
];

/** Posts that are tended concurrently. */
const width = 16;

export const tendAll = async (store: DomainStore, events: readonly DecodedEvent[]): Promise<void> => {
  const named = events.filter(({ type }) => (approvalTypes as readonly string[]).includes(type));
  // The partition key of a post and of its requests is the id of the post.
  const ids = [...new Set(named.map(({ metadata }) => metadata.partitionKey))];
  for (let at = 0; at < ids.length; at += width) {
    await Promise.all(ids.slice(at, at + width).map((id) => tendApprovals(store, id)));
  }
};
