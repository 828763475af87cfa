import { Approval, ApprovalApprove } from '#schemas/http/approval.ts';
import { IdParams } from '#schemas/http/common.ts';
import { decideApproval } from '../approvals/decide.ts';
import { decidedExample } from '../approvals/examples.ts';
import { operation } from '../operation.ts';

export const approveApproval = operation({
  id: 'approveApproval',
  method: 'POST',
  path: '/approvals/{id}/approve',
  tag: 'approvals',
  summary: 'Approve a post: it goes out as it was shown',
  description:
    'Exactly the content that the request shows is released. A target whose time has passed goes out at once. Of two people who decide, the first decides and the other gets `approval_not_pending` with `decidedBy`. Where the post was changed meanwhile, the request is withdrawn and the answer is `approval_superseded`.',
  scope: 'approvals.decide',
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
