import { ApprovalLink, ApprovalLinkCreate } from '#schemas/http/approval-link.ts';
import { IdParams } from '#schemas/http/common.ts';
import { linkExample } from '../approvals/examples.ts';
import { createLink } from '../approvals/links.ts';
import { operation } from '../operation.ts';

export const createApprovalLink = operation({
  id: 'createApprovalLink',
  method: 'POST',
  path: '/approvals/{id}/links',
  tag: 'approvals',
  summary: 'Make a link through which a guest of the client decides',
  description:
    'Whoever opens the page sees the post as it will look on each network, types a name, and approves, rejects or asks for changes: `decidedBy` is then `{type: guest}` with the id of the link. Opening the page changes nothing, so that scanners of mail may. The link works until it expires or is revoked, while its maker may decide, and shows the outcome after a decision. A post that goes to accounts of several clients gets no link.',
  scope: 'approvals.decide',
  idempotent: 'required',
  cost: 1,
  bodyOptional: true,
  params: IdParams,
  body: ApprovalLinkCreate,
  answer: ApprovalLink,
  codes: ['approval_not_pending', 'stream_full'],
  example: { body: { expiresInHours: 168 }, data: linkExample },
  handle: (call) => createLink(call),
});
