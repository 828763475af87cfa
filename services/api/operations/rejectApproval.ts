import { Approval, ApprovalRefuse } from '#schemas/http/approval.ts';
import { IdParams } from '#schemas/http/common.ts';
import { decideApproval } from '../approvals/decide.ts';
import { decidedExample } from '../approvals/examples.ts';
import { operation } from '../operation.ts';

export const rejectApproval = operation({
  id: 'rejectApproval',
  method: 'POST',
  path: '/approvals/{id}/reject',
  tag: 'approvals',
  summary: 'Reject a post: its held targets are canceled',
  description:
    'No target that waits for this approval goes out any more. A new post is needed to publish the content elsewhere, or later.',
  scope: 'approvals.decide',
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
