import type { ApprovalEvent } from '#schemas/approval.ts';
import type { approvalPublic } from '#schemas/http/webhook-events/approval.ts';
import type { Publisher } from './rule.ts';

/** Requests for approval, the links for guests, and what people decided about them. */

/** The post of the request, and its client. */
interface Subject {
  readonly postId: string;
  readonly clientId: string;
}

export const approval: Publisher<typeof approvalPublic, ApprovalEvent, Subject> = {
  rules: {
    ApprovalRequested: [
      {
        type: 'approval.requested',
        ofEvent: ({ id, data: { postId, clientId, requestedBy, contentHash, scheduledAt } }) => ({
          approvalId: id,
          ...{ postId, clientId, requestedBy, contentHash, scheduledAt },
        }),
      },
    ],
    ApprovalLinkCreated: [
      {
        type: 'approval.link_created',
        ofStream: ({ id, data: { linkId, expiresAt } }, about) => ({ approvalId: id, ...about, linkId, expiresAt }),
      },
    ],
    ApprovalLinkRevoked: [
      {
        type: 'approval.link_revoked',
        ofStream: ({ id, data: { linkId } }, about) => ({ approvalId: id, ...about, linkId }),
      },
    ],
    ApprovalGuestNamed: 'part of the decision that follows it; the name is personal',
    ApprovalApproved: [
      { type: 'approval.approved', ofStream: ({ id, data }, about) => ({ approvalId: id, ...about, ...data }) },
    ],
    ApprovalRejected: [
      { type: 'approval.rejected', ofStream: ({ id, data }, about) => ({ approvalId: id, ...about, ...data }) },
    ],
    ApprovalChangesRequested: [
      {
        type: 'approval.changes_requested',
        ofStream: ({ id, data }, about) => ({ approvalId: id, ...about, ...data }),
      },
    ],
    ApprovalWithdrawn: [
      { type: 'approval.withdrawn', ofStream: ({ id, data }, about) => ({ approvalId: id, ...about, ...data }) },
    ],
  },
  evolve: (subject, event) => {
    if (event.type !== 'ApprovalRequested') return subject;
    const { postId, clientId } = event.data;
    return { postId, clientId };
  },
};
