import { ApprovalLink } from '#schemas/http/approval-link.ts';
import { IdParams } from '#schemas/http/common.ts';
import { linkExample } from '../approvals/examples.ts';
import { listLinks } from '../approvals/links.ts';
import { operation } from '../operation.ts';

export const listApprovalLinks = operation({
  id: 'listApprovalLinks',
  method: 'GET',
  path: '/approvals/{id}/links',
  tag: 'approvals',
  summary: 'List the links of a request for approval, newest first',
  description:
    'Those that expired or were revoked, too; without their addresses, which the answer to the creation alone shows.',
  scope: 'approvals.decide',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: ApprovalLink,
  list: true,
  codes: [],
  example: { data: { ...linkExample, url: null, token: null } },
  handle: (call) => listLinks(call),
});
