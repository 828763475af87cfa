import type { ClientBase, Pool } from 'pg';
import type { Platform } from '#schemas/common.ts';
import { isOpenTarget } from './open-targets.ts';

/** Open work of accounts that are or were disconnected. */

/**
 * The next accounts disconnected since then that have open targets from before they were connected again, if they were.
 * The revision is that of the last disconnect.
 * @param afterId the last one seen
 */
export const disconnectedWithOpen = async (
  pool: Pool,
  since: Date,
  afterId: string,
): Promise<readonly { readonly id: string; readonly workspaceId: string; readonly revision: number }[]> => {
  const { rows } = await pool.query<{ id: string; workspaceId: string; revision: number }>(
    `select a.id::text as id, a.workspace_id::text as "workspaceId",
       a.disconnected_revision as revision
     from read.accounts a
     where a.disconnected_at > $1 and a.id > $2
       and exists (select from read.post_targets t where t.account_id = a.id and ${isOpenTarget('t')}
         and (a.reconnected_at is null or t.created_at < a.reconnected_at))
     order by a.id limit 500`,
    [since, afterId],
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
  readonly workspaceId: string;
  /** ISO 8601 instant of the disconnect, or of the consent that no account came of. */
  readonly unusedSince: string;
}

/**
 * Those of a network, the first of each workspace before the second of any. An account without a row counts after an
 * hour: somebody died between its credentials and its event, or the read model lacks it, which its stream tells.
 * @param tried ids of accounts to leave out
 */
export const unusedCredentials = async (
  pool: Pool,
  platform: Platform,
  tried: readonly string[],
  limit: number,
): Promise<readonly KeptCredential[]> => {
  const { rows } = await pool.query<{ id: string; workspaceId: string; since: Date }>(
    `select id, "workspaceId", since from (
       select c.account_id::text as id, c.workspace_id::text as "workspaceId",
         case when a.id is null then c.kept_at else a.disconnected_at end as since,
         row_number() over (partition by c.workspace_id order by c.account_id) as place
       from ops.network_credentials c left join read.accounts a on a.id = c.account_id
       where c.platform = $1 and c.account_id <> all($2::uuid[])
         and ((a.id is null and c.kept_at < now() - interval '1 hour') or (a.status = 'disconnected'
           and c.kept_at < greatest(a.disconnected_at, now() - interval '1 hour')))
     ) kept order by place, id limit $3`,
    [platform, tried, limit],
  );
  return rows.map(({ id, workspaceId, since }) => ({
    accountId: id,
    workspaceId,
    unusedSince: since.toISOString(),
  }));
};
