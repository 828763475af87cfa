import { type ApprovalRow, getApproval as queryApproval } from '#projections/models/approvals.ts';
import { Approval } from '#schemas/http/approval.ts';
import { IdParams } from '#schemas/http/common.ts';
import { approvalExample } from '../approvals/examples.ts';
import { notWrittenYet, showApproval } from '../approvals/show.ts';
import { operation } from '../operation.ts';
import { readRow } from '../rows.ts';

export const getApproval = operation({
  id: 'getApproval',
  method: 'GET',
  path: '/approvals/{id}',
  tag: 'approvals',
  summary: 'Get a request for approval, with the post that it is about',
  scope: 'approvals.read',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Approval,
  codes: [],
  example: { data: approvalExample },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const row = await readRow<ApprovalRow>(
      call,
      'approval',
      ['posts'],
      (id) => queryApproval(deps.knex, workspaceId, id),
      () => notWrittenYet(call),
    );
    return { data: await showApproval(call, row), revision: row.revision };
  },
});
