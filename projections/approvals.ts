import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { ApprovalEvent, ApprovalStatus, WithdrawReason } from '#schemas/approval.ts';
import type { Actor } from '#schemas/common.ts';
import { ofClientsAlone, threeTimes } from './client-posts.ts';
import { change, defineModel, type Row, unchanged } from './model.ts';
import { asRow, type NewestFirst, newestFirst, type Page, type PageOf } from './rows.ts';

/** Requests for approval. The content that each is about is in the post's stream, at `post_revision`. */

interface Own {
  readonly post_id: string;
  readonly client_id: string;
  readonly status: ApprovalStatus;
  readonly post_revision: number;
  readonly content_hash: string;
  /** When the first of its targets was due as the approval was asked for. */
  readonly scheduled_at: string;
  readonly requested_by: Actor;
  readonly decided_by: Actor | null;
  readonly decided_at: string | null;
  readonly comment: string | null;
  readonly withdrawn_reason: WithdrawReason | null;
}
export type ApprovalRow = Row<Own>;

type Decision = { readonly decidedBy: Actor; readonly comment: string | null };

const decided = (status: ApprovalStatus) =>
  change<Own, Decision>((row, { decidedBy, comment }, { metadata }) => ({
    ...row,
    status,
    decided_by: decidedBy,
    decided_at: metadata.occurredAt,
    comment,
  }));

export const approvals = defineModel<Own, ApprovalEvent>({
  name: 'approvals',
  kind: 'approval',
  columns: {
    post_id: 'uuid',
    client_id: 'uuid',
    status: 'text',
    post_revision: 'int4',
    content_hash: 'text',
    scheduled_at: 'timestamptz',
    requested_by: 'jsonb',
    decided_by: 'jsonb',
    decided_at: 'timestamptz',
    comment: 'text',
    withdrawn_reason: 'text',
  },
  indexes: [
    { on: '(workspace_id, created_at, id)' },
    { on: '(workspace_id, status, created_at, id)' },
    { on: '(client_id, created_at, id)' },
    { on: '(client_id, status, created_at, id)' },
    { on: '(post_id, created_at, id)' },
    { on: `(id) where status = 'pending'` },
  ],
  on: {
    ApprovalRequested: (_row, { postId, clientId, postRevision, contentHash, requestedBy, scheduledAt }) => ({
      post_id: postId,
      client_id: clientId,
      status: 'pending',
      post_revision: postRevision,
      content_hash: contentHash,
      scheduled_at: scheduledAt,
      requested_by: requestedBy,
      decided_by: null,
      decided_at: null,
      comment: null,
      withdrawn_reason: null,
    }),
    // The link's token is derived when it is made, and the guest's name is read from the stream: it is personal.
    ApprovalLinkCreated: unchanged,
    ApprovalLinkRevoked: unchanged,
    ApprovalGuestNamed: unchanged,
    ApprovalApproved: decided('approved'),
    ApprovalRejected: decided('rejected'),
    ApprovalChangesRequested: decided('changes_requested'),
    ApprovalWithdrawn: change((row, { reason }) => ({ ...row, status: 'withdrawn', withdrawn_reason: reason })),
  },
});

export const getApproval = async (knex: Knex, workspaceId: string, id: string): Promise<ApprovalRow | null> => {
  const row = await knex('read.approvals').where({ id, workspace_id: workspaceId }).first();
  return row === undefined ? null : asRow(approvals, row);
};

export interface ApprovalFilters {
  readonly statuses?: readonly ApprovalStatus[];
  readonly clientId?: string;
  readonly postId?: string;
  /** Only of posts of these clients that go to accounts of these clients alone. */
  readonly clientIds?: readonly string[];
}

/** Newest first. */
export const listApprovals = async (
  knex: Knex,
  workspaceId: string,
  filters: ApprovalFilters,
  page: PageOf<NewestFirst>,
): Promise<Page<ApprovalRow>> => {
  const query = knex('read.approvals').where({ workspace_id: workspaceId });
  const { statuses, clientId, postId, clientIds } = filters;
  if (statuses?.length === 1) query.where({ status: statuses[0] });
  else if (statuses !== undefined) query.whereRaw('status = any(?::text[])', [[...statuses]]);
  if (clientId !== undefined) query.where({ client_id: clientId });
  if (postId !== undefined) query.where({ post_id: postId });
  if (clientIds !== undefined) {
    const seen = `exists (select from read.posts p where p.id = approvals.post_id and ${ofClientsAlone('p')})`;
    query.whereRaw(seen, threeTimes(clientIds));
  }
  return newestFirst(query, approvals, page);
};

/**
 * Posts whose newest request lags: it was not made, or a decision about it was not carried out, or it is pending although
 * the post waits for none. A request that was sent back and whose post cannot become a draft waits for a revise.
 */
export const untendedSql = `
select p.id::text as id from read.posts p
left join read.approvals a on a.id = (p.approval ->> 'id')::uuid
where p.approval ->> 'status' = 'pending' and p.shown_status in ('pending_approval', 'publishing') and p.id > $1
  and (a.id is null or a.status in ('approved', 'rejected')
    or (a.status = 'changes_requested' and (p.approval ->> 'isWhole')::bool))
union
select a.post_id::text from read.approvals a join read.posts p on p.id = a.post_id
where a.status = 'pending' and p.id > $1
  and ((p.approval ->> 'id')::uuid is distinct from a.id
    or p.status not in ('pending_approval', 'scheduled', 'publishing'))
order by id limit 100`;

/** In the order of their ids. @param after the last one seen */
export const untendedPosts = async (pool: Pool, after: string): Promise<readonly string[]> =>
  (await pool.query<{ id: string }>(untendedSql, [after])).rows.map(({ id }) => id);
