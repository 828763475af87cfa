import type { Pool, PoolClient } from 'pg';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { retentionMonths } from './tables.ts';

/**
 * When the rule that counts gains changes, the recounter counts the older days again, once: it marks some hundred at a
 * time, and only while nothing else is marked. A version of the tables that was filled under this rule needs no
 * recount.
 */

/**
 * Raise it with each change of the result that a recount makes of the same observations. 1: gains are those between
 * local midnights, and the sums keep which counters were fetched.
 */
export const rule = 1;
/** Days of one step. */
const stepDays = 500;

/**
 * Marks the next days that an earlier rule counted. Returns how many; 0: there are none, or another process marks them
 * now.
 */
export const markOutdated = (pool: Pool, version: number): Promise<number> =>
  inTransaction(pool, async (tx) => {
    await tx.query('insert into ops.analytics_rules (version, rule) values ($1, 0) on conflict do nothing', [version]);
    const { rows } = await tx.query<{ workspace_id: string; day: string }>(
      `select workspace_id, day::text as day from ops.analytics_rules
       where version = $1 and rule < $2 for update skip locked`,
      [version, rule],
    );
    const [place] = rows;
    return { commit: true, result: place === undefined ? 0 : await markAfter(tx, version, place) };
  });

const markAfter = async (
  tx: PoolClient,
  version: number,
  after: { readonly workspace_id: string; readonly day: string },
): Promise<number> => {
  const { rows } = await tx.query<{ days: number; workspace_id: string; day: string }>(
    `with next as materialized (
       select workspace_id, day from ops.analytics_days
       where version = $1 and (workspace_id, day) > ($2::uuid, $3::date) order by workspace_id, day limit $4
     ), marked as (
       insert into ops.analytics_marked (version, workspace_id, kind, day, since, mark)
       select $1, workspace_id, 'gains', day, drawn, drawn from (
         select workspace_id, day, nextval('ops.analytics_marks') as drawn from next
         where day > current_date - make_interval(months => $5) order by workspace_id, day
       ) as kept
       on conflict (version, workspace_id, kind, day) do update set mark = excluded.mark
     )
     select (select count(*) from next)::int as days, workspace_id, day::text as day from next
     order by next.workspace_id desc, next.day desc limit 1`,
    [version, after.workspace_id, after.day, stepDays, retentionMonths],
  );
  const [last] = rows;
  const isEnd = last === undefined || last.days < stepDays;
  await tx.query('update ops.analytics_rules set workspace_id = $2, day = $3, rule = $4 where version = $1', [
    version,
    last?.workspace_id ?? after.workspace_id,
    last?.day ?? after.day,
    isEnd ? rule : 0,
  ]);
  return last?.days ?? 0;
};

/** For a version whose tables are new: this rule will count everything in them. */
export const startsWithRule = async (pool: Pool, version: number): Promise<void> => {
  await pool.query('insert into ops.analytics_rules (version, rule) values ($1, $2) on conflict do nothing', [
    version,
    rule,
  ]);
};
