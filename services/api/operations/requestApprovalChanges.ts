import { Approval, ApprovalRefuse } from '#schemas/http/approval.ts';
import { IdParams } from '#schemas/http/common.ts';
import { decideApproval } from '../approvals/decide.ts';
import { decidedExample } from '../approvals/examples.ts';
import { operation } from '../operation.ts';

export const requestApprovalChanges = operation({
  id: 'requestApprovalChanges',
  method: 'POST',
  path: '/approvals/{id}/request-changes',
  tag: 'approvals',
  summary: 'Ask for changes: the post becomes a draft again',
  description:
    'The held targets are canceled, and the post is a draft again: PATCH /posts/{id} changes it, and POST /posts/{id}/publish makes a new plan and asks anew. Of a post that was approved before and then revised, the changed targets stay held, since others may be out: POST /posts/{id}/revise asks anew.',
  scope: 'approvals.decide',
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
