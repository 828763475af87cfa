import { ApprovalLink, ApprovalLinkParams } from '#schemas/http/approval-link.ts';
import { linkExample } from '../approvals/examples.ts';
import { revokeLink } from '../approvals/links.ts';
import { operation } from '../operation.ts';

export const revokeApprovalLink = operation({
  id: 'revokeApprovalLink',
  method: 'DELETE',
  path: '/approvals/{id}/links/{linkId}',
  tag: 'approvals',
  summary: 'Revoke a link before its end',
  description:
    'Nobody decides through it any more; a decision that was made through it stays. Revoking it again answers the same.',
  scope: 'approvals.decide',
  idempotent: 'none',
  cost: 1,
  params: ApprovalLinkParams,
  answer: ApprovalLink,
  codes: [],
  example: { data: { ...linkExample, url: null, token: null, isRevoked: true } },
  handle: (call) => revokeLink(call),
});
