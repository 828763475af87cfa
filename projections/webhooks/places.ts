import type { Pool } from 'pg';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { view } from '../shapes.ts';

/**
 * Reserved places of webhook endpoints: `ops.webhook_places` holds those that the read model does not show yet. Both
 * are counted under one lock of the workspace, so that no two callers take its last place.
 */

/** Any constant; the lock has the workspace for its second half. */
const lockClass = 7_070_718;

/** `$1`: the workspace; `$2`: no need to count further. */
const countSql = `
select (select count(*) from (
    select from ${view('webhooks')} w where w.workspace_id = $1 and w.deleted_at is null limit $2) live)
  + (select count(*) from ops.webhook_places p
     where p.workspace_id = $1 and not exists (select from ${view('webhooks')} w where w.id = p.webhook_id)) as taken`;

/** False when there is no room. Taking the same place again succeeds. */
export const takePlace = (pool: Pool, workspaceId: string, webhookId: string, limit: number): Promise<boolean> =>
  inTransaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1, hashtext($2))', [lockClass, workspaceId]);
    await tx.query(
      `delete from ops.webhook_places p using ${view('webhooks')} w where p.workspace_id = $1 and w.id = p.webhook_id`,
      [workspaceId],
    );
    const own = await tx.query(
      `select from ops.webhook_places where webhook_id = $1 union all select from ${view('webhooks')} as webhooks where id = $1`,
      [webhookId],
    );
    if (own.rowCount !== 0) return { commit: true, result: true };
    const { rows } = await tx.query<{ taken: string }>(countSql, [workspaceId, limit]);
    if (Number(rows[0]?.taken) >= limit) return { commit: true, result: false };
    await tx.query('insert into ops.webhook_places (webhook_id, workspace_id) values ($1, $2)', [
      webhookId,
      workspaceId,
    ]);
    return { commit: true, result: true };
  });

/** Ids of endpoints whose place was taken longer ago than this. */
export const oldPlaces = async (pool: Pool, workspaceId: string, olderThanMs: number): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ id: string }>(
    `select webhook_id as id from ops.webhook_places
     where workspace_id = $1 and taken_at < now() - $2 * interval '1 millisecond'`,
    [workspaceId, olderThanMs],
  );
  return rows.map(({ id }) => id);
};

export const freePlace = async (pool: Pool, webhookId: string): Promise<void> => {
  await pool.query('delete from ops.webhook_places where webhook_id = $1', [webhookId]);
};
