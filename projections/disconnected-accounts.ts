import type { ClientBase, Pool } from 'pg';
import type { Platform } from '#schemas/common.ts';
import { isOpenTarget } from './open-targets.ts';

/** Open work of accounts that are or were disconnected. */

/**
 * Accounts disconnected since then that have open targets from before they were connected again, if they were. The
 * revision is that of the last disconnect, or of the row where a former release wrote it.
 */
export const disconnectedWithOpen = async (
  pool: Pool,
  since: Date,
): Promise<readonly { readonly id: string; readonly workspaceId: string; readonly revision: number }[]> => {
  const { rows } = await pool.query<{ id: string; workspaceId: string; revision: number }>(
    `select a.id::text as id, a.workspace_id::text as "workspaceId",
       coalesce(a.disconnected_revision, a.revision)::int as revision
     from read.accounts a
     where (a.disconnected_at > $1 or (a.status = 'disconnected' and a.checked_at > $1))
       and exists (select from read.post_targets t where t.account_id = a.id and ${isOpenTarget('t')}
         and (a.reconnected_at is null or t.created_at < a.reconnected_at))
     order by a.id`,
    [since],
  );
  return rows;
};

export interface OpenTarget {
  readonly id: string;
  readonly postId: string;
  /** ISO 8601, as Postgres writes it: to the microsecond. */
  readonly dueAt: string;
}

/** Sorts before every target. */
export const beforeAllTargets: OpenTarget = {
  id: '00000000-0000-0000-0000-000000000000',
  postId: '',
  dueAt: '-infinity',
};

/**
 * The next open targets of an account, by due time.
 * @param scheduledBefore only targets scheduled before this instant; null: all
 * @param after the last one seen
 */
export const openTargetsOfAccount = async (
  db: Pool | ClientBase,
  accountId: string,
  scheduledBefore: string | null,
  after: OpenTarget,
): Promise<readonly OpenTarget[]> => {
  const { rows } = await db.query<OpenTarget>(
    `select t.id::text as id, t.post_id::text as "postId", t.due_at::text as "dueAt" from read.post_targets t
     where t.account_id = $1 and ${isOpenTarget('t')} and ($2::timestamptz is null or t.created_at < $2)
       and (t.due_at, t.id) > ($3::timestamptz, $4::uuid)
     order by t.due_at, t.id limit 100`,
    [accountId, scheduledBefore, after.dueAt, after.id],
  );
  return rows;
};

/**
 * A disconnected account whose credentials are still kept. A consent keeps its credentials before the event that connects
 * the account again: those that are newer than the disconnect count after an hour, when such a consent has come to nothing.
 */
export interface KeptCredential {
  readonly accountId: string;
  readonly platform: Platform;
  /** ISO 8601; null where a former release did not note it. */
  readonly disconnectedAt: string | null;
}

/** @param after id of the account that came last; null: from the beginning */
export const disconnectedWithCredentials = async (
  pool: Pool,
  after: string | null,
  limit: number,
): Promise<readonly KeptCredential[]> => {
  const { rows } = await pool.query<{ id: string; platform: Platform; at: Date | null }>(
    `select c.account_id::text as id, c.platform, a.disconnected_at as at
     from ops.network_credentials c join read.accounts a on a.id = c.account_id
     where a.status = 'disconnected' and ($1::uuid is null or c.account_id > $1)
       and c.kept_at < greatest(coalesce(a.disconnected_at, now()), now() - interval '1 hour')
     order by c.account_id limit $2`,
    [after, limit],
  );
  return rows.map(({ id, platform, at }) => ({
    accountId: id,
    platform,
    disconnectedAt: at?.toISOString() ?? null,
  }));
};
