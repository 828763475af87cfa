import type { ClientBase, Pool } from 'pg';
import type { Platform } from '#schemas/common.ts';
import { isOpenTarget } from '../models/sql.ts';
import { view } from '../shapes.ts';
import { isTaken, leaseKindOfTargets } from './due-targets.ts';

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
     from ${view('accounts')} a
     where a.disconnected_at > $1 and a.id > $2
       and exists (select from ${view('post_targets')} t where t.account_id = a.id and ${isOpenTarget('t')}
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
    `select t.id::text as id, t.post_id::text as "postId", t.due_at::text as "dueAt" from ${view('post_targets')} t
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
 * Whether a call to the network of an account is under way, or its network looks at a post of it: its credentials are
 * needed until that is settled. Of a target whose row is behind the lease tells it. Who is not served for a day loses
 * them all the same: nobody who disconnects an account waits for a publisher that is gone.
 */
const isAtWork = (
  account: string,
): string => `exists (select from ${view('post_targets')} t where t.account_id = ${account}
  and case t.status when 'publishing' then t.updated_at > now() - interval '1 day'
    when 'processing' then t.processing_until > now() - interval '1 day'
    else t.status in ('pending', 'rate_limited') and ${isTaken('t.id', `'${leaseKindOfTargets}'`)} end)`;

/**
 * Those of a network, the first of each workspace before the second of any. An account without a row counts after an
 * hour: a process crashed between its credentials and its event, or the read model lags; the stream shows which.
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
       from ops.network_credentials c left join ${view('accounts')} a on a.id = c.account_id
       where c.platform = $1 and c.account_id <> all($2::uuid[])
         and ((a.id is null and c.kept_at < now() - interval '1 hour') or (a.status = 'disconnected'
           and c.kept_at < greatest(a.disconnected_at, now() - interval '1 hour')))
         and not ${isAtWork('c.account_id')}
     ) kept order by place, id limit $3`,
    [platform, tried, limit],
  );
  return rows.map(({ id, workspaceId, since }) => ({
    accountId: id,
    workspaceId,
    unusedSince: since.toISOString(),
  }));
};

/** Open work of archived clients: targets that are not under way, and invites that a guest could still accept. */
const isOpenInvite = (i: string): string => `${i}.revoked_at is null and ${i}.expires_at > now()`;

/** The next clients archived since then that have open work. @param afterId the last one seen */
export const archivedWithOpen = async (
  pool: Pool,
  since: Date,
  afterId: string,
): Promise<readonly { readonly id: string; readonly workspaceId: string; readonly revision: number }[]> => {
  const { rows } = await pool.query<{ id: string; workspaceId: string; revision: number }>(
    `select c.id::text as id, c.workspace_id::text as "workspaceId", c.revision::int as revision from ${view('clients')} c
     where c.archived_at > $1 and c.id > $2 and (
       exists (select from ${view('post_targets')} t where t.client_id = c.id and ${isOpenTarget('t')})
       or exists (select from ${view('invites')} i where i.client_id = c.id and ${isOpenInvite('i')}))
     order by c.id limit 500`,
    [since, afterId],
  );
  return rows;
};

/** Open targets of the next posts, by post. @param afterPostId the last one seen */
export const openTargetsOf = async (
  db: Pool | ClientBase,
  clientId: string,
  afterPostId: string,
): Promise<readonly { readonly postId: string; readonly targetIds: string[] }[]> => {
  const { rows } = await db.query<{ postId: string; targetIds: string[] }>(
    `select t.post_id::text as "postId", array_agg(t.id::text order by t.id) as "targetIds" from ${view('post_targets')} t
     where t.client_id = $1 and ${isOpenTarget('t')} and t.post_id > $2
     group by t.post_id order by t.post_id limit 100`,
    [clientId, afterPostId],
  );
  return rows;
};

/** Ids of the next open invites. @param afterId the last one seen */
export const openInvitesOf = async (
  db: Pool | ClientBase,
  clientId: string,
  afterId: string,
): Promise<readonly string[]> => {
  const { rows } = await db.query<{ id: string }>(
    `select i.id::text as id from ${view('invites')} i
     where i.client_id = $1 and ${isOpenInvite('i')} and i.id > $2 order by i.id limit 100`,
    [clientId, afterId],
  );
  return rows.map(({ id }) => id);
};

/**
 * Live accounts by their id on the network, whose credentials we have. Several clients may have connected the same one,
 * also clients of other workspaces.
 */
const isLive = (account: string): string => `${account}.status <> 'disconnected' and ${account}.network = 'live'
  and exists (select from ops.network_credentials c where c.account_id = ${account}.id)`;

/** Those of the ids that are of live accounts. */
export const liveIds = async (
  pool: Pool,
  platform: Platform,
  externalIds: readonly string[],
): Promise<ReadonlySet<string>> => {
  const { rows } = await pool.query<{ id: string }>(
    `select distinct a.external_id as id from ${view('accounts')} a
     where a.platform = $1 and a.external_id = any($2) and ${isLive('a')}`,
    [platform, externalIds],
  );
  return new Set(rows.map(({ id }) => id));
};

/** Those that have not lapsed. @param after id of the account that came last; null: from the beginning */
export const liveAccounts = async (
  pool: Pool,
  { platform, externalId }: { readonly platform: Platform; readonly externalId: string },
  after: string | null,
  limit: number,
): Promise<readonly { readonly id: string; readonly workspaceId: string }[]> => {
  const { rows } = await pool.query<{ id: string; workspaceId: string }>(
    `select a.id::text as id, a.workspace_id::text as "workspaceId" from ${view('accounts')} a
     where a.platform = $1 and a.external_id = $2 and a.status = 'connected'
       and ($3::uuid is null or a.id > $3) and ${isLive('a')}
     order by a.id limit $4`,
    [platform, externalId, after, limit],
  );
  return rows;
};

/** A place of which posts were pushed. */
interface PushedPlace {
  readonly place: string;
  /** No live account of the network is this place any more. */
  readonly isLeft: boolean;
}

/** Steps from place to place, over the posts of each. @param after the place that came last; null: from the beginning */
export const pushedPlaces = async (
  pool: Pool,
  platform: Platform,
  after: string | null,
  limit: number,
): Promise<readonly PushedPlace[]> => {
  const { rows } = await pool.query<PushedPlace>(
    `with recursive places as (
       (select place from ops.pushed_posts where $2::bigint is null or place > $2 order by place limit 1)
       union all
       select (select h.place from ops.pushed_posts h where h.place > p.place order by h.place limit 1)
       from places p where p.place is not null
     )
     select p.place::text as place, not exists (select from ${view('accounts')} a
       where a.platform = $1 and a.external_id = p.place::text and ${isLive('a')}) as "isLeft"
     from (select place from places where place is not null limit $3) p`,
    [platform, after, limit],
  );
  return rows;
};
