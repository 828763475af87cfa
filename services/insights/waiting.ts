import type { PoolClient } from 'pg';

/**
 * Marks accounts whose wanted jobs were all tried as done, for the refreshes that wait for them; the caller has locked
 * the accounts' rows. The transaction that marks an account also counts it off once in each refresh.
 */
export const settle = async (tx: PoolClient, accountIds: readonly string[], failed: boolean): Promise<void> => {
  const { rows } = await tx.query<{ id: string; count: number }>(
    `with ended as (
       update ops.insights_refresh_accounts r set failed = failed or $2,
         done = not exists (select 1 from ops.insights_jobs j where j.account_id = r.account_id and j.wanted)
       where account_id = any($1::uuid[]) and not done returning refresh_id, done
     )
     select refresh_id as id, count(*)::int as count from ended where done group by 1`,
    [accountIds, failed],
  );
  if (rows.length === 0) return;
  const ids = rows.map(({ id }) => id);
  // Locks in the order of the ids, so that two transactions never deadlock.
  await tx.query(
    'select 1 from ops.insights_refreshes where refresh_id = any($1::uuid[]) order by refresh_id for update',
    [ids],
  );
  await tx.query(
    `update ops.insights_refreshes r set waiting = r.waiting - t.count
     from unnest($1::uuid[], $2::int[]) as t (id, count) where r.refresh_id = t.id`,
    [ids, rows.map(({ count }) => count)],
  );
};
