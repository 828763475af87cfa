import type { NewestFirst } from '#projections/engine/rows.ts';
import { listApprovals as queryApprovals } from '#projections/models/approvals.ts';
import { ApprovalQuery, ApprovalSummary } from '#schemas/http/approval.ts';
import { approvalRowExample } from '../approvals/examples.ts';
import { renderApprovalRow } from '../approvals/show.ts';
import { withinLimit } from '../client-limits.ts';
import { listPage, newestFirst } from '../cursor.ts';
import { operation } from '../operation.ts';

export const listApprovals = operation({
  id: 'listApprovals',
  method: 'GET',
  path: '/approvals',
  tag: 'approvals',
  summary: 'List requests for approval, newest first',
  description: 'Without the posts that they are about: GET /approvals/{id} has its post.',
  scope: 'approvals.read',
  idempotent: 'none',
  cost: 1,
  query: ApprovalQuery,
  answer: ApprovalSummary,
  list: true,
  codes: [],
  example: { data: approvalRowExample },
  handle: async (call) => {
    await call.behind(['posts']);
    const { limit: _limit, cursor: _cursor, status, ...more } = call.query;
    const filters = { ...more, ...(status === undefined ? {} : { statuses: status }), ...withinLimit(call.principal) };
    return listPage('listApprovals', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        queryApprovals(knex, call.workspaceId, filters, page),
      keyOf: newestFirst,
      show: renderApprovalRow,
    });
  },
});
