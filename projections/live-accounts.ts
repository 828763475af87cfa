import type { Pool } from 'pg';
import type { Platform } from '#schemas/common.ts';

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
    `select distinct a.external_id as id from read.accounts a
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
    `select a.id::text as id, a.workspace_id::text as "workspaceId" from read.accounts a
     where a.platform = $1 and a.external_id = $2 and a.status = 'connected'
       and ($3::uuid is null or a.id > $3) and ${isLive('a')}
     order by a.id limit $4`,
    [platform, externalId, after, limit],
  );
  return rows;
};

/** A place of which posts were pushed. */
export interface PushedPlace {
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
     select p.place::text as place, not exists (select from read.accounts a
       where a.platform = $1 and a.external_id = p.place::text and ${isLive('a')}) as "isLeft"
     from (select place from places where place is not null limit $3) p`,
    [platform, after, limit],
  );
  return rows;
};
