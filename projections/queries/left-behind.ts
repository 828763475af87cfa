import type { Pool } from 'pg';
import type { Mode } from '#schemas/common.ts';
import { view } from '../shapes.ts';

/**
 * What goes on in a workspace and its sandbox though its maker may be gone. The models do not have the makers of links and
 * endpoints: their streams do, so these are the newest that may be looked at, a bounded number of each kind.
 */

/** The newest of a kind that are looked at. */
export const maxLeft = 200;

export interface MemberKey {
  readonly id: string;
  readonly name: string;
  readonly mode: Mode;
  readonly expiresAt: Date;
  /** Whether it is neither revoked nor expired. */
  readonly isOpen: boolean;
}

/** Also those that ended: what they made goes on. @param now ISO 8601 */
export const keysOfMember = async (
  pool: Pool,
  liveId: string,
  memberId: string,
  now: string,
): Promise<readonly MemberKey[]> =>
  (
    await pool.query(
      `select id::text, name, mode, expires_at as "expiresAt", revoked_at is null and expires_at > $3 as "isOpen"
       from ${view('api_keys')} as api_keys where workspace_id = $1 and member_id = $2 order by created_at desc, id desc limit 1000`,
      [liveId, memberId, now],
    )
  ).rows;

export interface Candidate {
  readonly id: string;
  readonly workspaceId: string;
}

const candidates = async (pool: Pool, sql: string, values: readonly unknown[]): Promise<readonly Candidate[]> =>
  (await pool.query<Candidate>(`${sql} limit ${maxLeft}`, [...values])).rows;

/** Connect links that still work: none lives longer than a week. */
export const openConnectInvites = (pool: Pool, tenants: readonly string[], now: string) =>
  candidates(
    pool,
    `select i.id::text, i.workspace_id::text as "workspaceId" from ${view('clients')} c join ${view('invites')} i on i.client_id = c.id
     where c.workspace_id = any($1::uuid[]) and i.created_at > $2::timestamptz - interval '7 days'
       and i.revoked_at is null and i.expires_at > $2
     order by i.created_at desc, i.id desc`,
    [tenants, now],
  );

/** Requests through whose links a guest may still decide. */
export const pendingRequests = (pool: Pool, tenants: readonly string[]) =>
  candidates(
    pool,
    `select id::text, workspace_id::text as "workspaceId" from ${view('approvals')} as approvals
     where workspace_id = any($1::uuid[]) and status = 'pending' order by created_at desc, id desc`,
    [tenants],
  );

export const liveWebhooks = (pool: Pool, tenants: readonly string[]) =>
  candidates(
    pool,
    `select id::text, workspace_id::text as "workspaceId" from ${view('webhooks')} as webhooks
     where workspace_id = any($1::uuid[]) and deleted_at is null order by created_at desc, id desc`,
    [tenants],
  );

/** Posts whose recycling one of these actors has set. */
export const recyclesSetBy = (pool: Pool, tenants: readonly string[], actorIds: readonly string[]) =>
  candidates(
    pool,
    `select p.id::text, p.workspace_id::text as "workspaceId" from ${view('clients')} c join ${view('posts')} p on p.client_id = c.id
     where c.workspace_id = any($1::uuid[]) and (p.recycle ->> 'enabled')::bool
       and p.recycle -> 'setBy' ->> 'id' = any($2::text[])
     order by p.created_at desc, p.id desc`,
    [tenants, actorIds],
  );
