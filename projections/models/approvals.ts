import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { ApprovalEvent, ApprovalStatus, WithdrawReason } from '#schemas/approval.ts';
import { type Actor, instantOf } from '#schemas/common.ts';
import type { approvalPublic } from '#schemas/http/webhook-events/approval.ts';
import type { TargetStatus } from '#schemas/target.ts';
import { change, defineModel, type Row, unchanged } from '../engine/model.ts';
import type { Publisher } from '../engine/publisher.ts';
import { asRow, type NewestFirst, newestFirst, type Page, type PageOf, toIso } from '../engine/rows.ts';
import { view } from '../shapes.ts';
import { ofClientsAlone, threeTimes } from './sql.ts';

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
    decided_at: instantOf(metadata),
    comment,
  }));

/** Requests for approval, the links for guests, and what people decided about them. */

/** The post of the request, and its client. */
interface Subject {
  readonly postId: string;
  readonly clientId: string;
}

const approvalPublisher: Publisher<typeof approvalPublic, ApprovalEvent, Subject> = {
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

export const approvals = defineModel<Own, ApprovalEvent>({
  name: 'approvals',
  kind: 'approval',
  publisher: approvalPublisher,
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
  const row = await knex(`${view('approvals')} as approvals`)
    .where({ id, workspace_id: workspaceId })
    .first();
  return row === undefined ? null : asRow(approvals, row);
};

/** What a person decided about a post. */
export interface PostDecision {
  readonly approvalId: string;
  readonly status: 'approved' | 'rejected' | 'changes_requested';
  readonly decidedBy: Actor;
  readonly decidedAt: string;
  readonly comment: string | null;
}

/**
 * SQL of the newest decision about a post as JSON; null: there is none. Only a request that was approved is withdrawn
 * after its decision.
 * @param posts name or alias of the view of posts
 */
export const lastDecisionSql = (posts: string): string =>
  `(select jsonb_build_object('approvalId', a.id, 'decidedBy', a.decided_by, 'decidedAt', a.decided_at, 'comment', a.comment,
      'status', case a.status when 'withdrawn' then 'approved' else a.status end)
    from ${view('approvals')} a where a.post_id = ${posts}.id and a.decided_at is not null
    order by a.created_at desc, a.id desc limit 1)`;

/** The newest decision among those up to `asOf`; null: none. */
export const lastDecision = async (knex: Knex, workspaceId: string, postId: string, asOf: string) => {
  const row = await knex(`${view('approvals')} as approvals`)
    .where({ workspace_id: workspaceId, post_id: postId })
    .whereRaw('decided_at <= ?::timestamptz', [asOf])
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .first();
  return row === undefined ? null : decisionOfRow(asRow(approvals, row));
};

export const decisionOfRow = (row: ApprovalRow): PostDecision | null => {
  const { id: approvalId, status, decided_by: decidedBy, decided_at: decidedAt, comment } = row;
  if (decidedBy === null || decidedAt === null || status === 'pending') return null;
  return { approvalId, status: status === 'withdrawn' ? 'approved' : status, decidedBy, decidedAt, comment };
};

/** A target of a request as it is now: a reschedule, a shift and a cancel keep the approval. */
export interface TargetNow {
  readonly status: TargetStatus;
  readonly dueAt: string;
}

/** By id. A target without a row is left out. */
export const targetsNow = async (
  knex: Knex,
  workspaceId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, TargetNow>> => {
  const query = knex(`${view('post_targets')} as post_targets`)
    .select('id', 'status', 'due_at')
    .where({ workspace_id: workspaceId });
  const rows: readonly { readonly id: string; readonly status: TargetStatus; readonly due_at: unknown }[] =
    await query.whereRaw('id = any(?::uuid[])', [[...ids]]);
  return new Map(rows.map(({ id, status, due_at: due }) => [id, { status, dueAt: toIso(due) ?? '' }]));
};

interface ApprovalFilters {
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
  const query = knex(`${view('approvals')} as approvals`).where({ workspace_id: workspaceId });
  const { statuses, clientId, postId, clientIds } = filters;
  if (statuses?.length === 1) query.where({ status: statuses[0] });
  else if (statuses !== undefined) query.whereRaw('status = any(?::text[])', [[...statuses]]);
  if (clientId !== undefined) query.where({ client_id: clientId });
  if (postId !== undefined) query.where({ post_id: postId });
  if (clientIds !== undefined) {
    const seen = `exists (select from ${view('posts')} p where p.id = approvals.post_id and ${ofClientsAlone('p')})`;
    query.whereRaw(seen, threeTimes(clientIds));
  }
  return newestFirst(query, approvals, page);
};

/** A post that waits for an approval, or a request that waits for a decision. */
interface Waiting {
  readonly id: string;
  readonly postId: string;
  /** Whether a process must bring the post and its requests to agree. */
  readonly lags: boolean;
}

/** Rows of one page. A walk passes everything that waits, since only the other side of each tells whether it lags. */
const pageOfWaiting = 500;

/**
 * Posts that wait, in the order of their ids. One lags whose newest request was not made, or was decided and the decision
 * not carried out. A request that was sent back and whose post cannot become a draft waits for a revise.
 */
const waitingPostsSql = `
select p.id::text as id, p.id::text as "postId", coalesce(a.status in ('approved', 'rejected')
  or (a.status = 'changes_requested' and p.whole), true) and p.shown_status in ('pending_approval', 'publishing') as lags
from (select id, shown_status, (approval ->> 'id')::uuid as asked, (approval ->> 'isWhole')::bool as whole
  from ${view('posts')} as posts where approval ->> 'status' = 'pending' and id > $1 order by id limit ${pageOfWaiting}) p
left join lateral (select status from ${view('approvals')} as approvals where id = p.asked offset 0) a on true
order by p.id`;

/** Requests that wait, in the order of their ids. One lags whose post waits for another request, or for none. */
const waitingRequestsSql = `
select a.id::text as id, a.post_id::text as "postId", p.asked is distinct from a.id
  or p.status not in ('pending_approval', 'scheduled', 'publishing') as lags
from (select id, post_id from ${view('approvals')} as approvals where status = 'pending' and id > $1 order by id limit ${pageOfWaiting}) a
cross join lateral (select (approval ->> 'id')::uuid as asked, status from ${view('posts')} as posts where id = a.post_id offset 0) p
order by a.id`;

/** Each walk of `untendedPosts`. */
export const walksOfWaiting = [waitingPostsSql, waitingRequestsSql] as const;

/**
 * The posts of one page of a walk whose approval lags.
 * @param after the last id that was walked over
 * @returns `next`: where the walk goes on; null: it is over
 */
export const untendedPosts = async (
  pool: Pool,
  walk: (typeof walksOfWaiting)[number],
  after: string,
): Promise<{ readonly ids: readonly string[]; readonly next: string | null }> => {
  const { rows } = await pool.query<Waiting>(walk, [after]);
  const next = rows.length < pageOfWaiting ? null : (rows.at(-1)?.id ?? null);
  return { ids: rows.filter(({ lags }) => lags).map(({ postId }) => postId), next };
};
