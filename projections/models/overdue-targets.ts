import type { Pool } from 'pg';
import { leaseKindOfTargets } from '../queries/due-targets.ts';
import { view } from '../shapes.ts';

/**
 * Targets whose attempt was due long ago and that have not ended, and those that are rescheduled again and again. Partial
 * indexes hold only targets that are not reported yet.
 */

export interface UnfinishedTarget {
  readonly id: string;
  /** When its attempt was due, or since when it is rescheduled, as Postgres writes it, to keep its microseconds. */
  readonly at: string;
}

export const beforeAllTargets: UnfinishedTarget = { id: '00000000-0000-0000-0000-000000000000', at: '-infinity' };

/** Statuses in which a target waits for a worker. */
export const unfinished =
  "status in ('pending', 'publishing', 'rate_limited', 'handed_to_platform') and overdue is not true";
/** A retry, a rate limit and a deferral give the attempt a time of its own. */
export const attemptAtSql = 'coalesce(retry_at, due_at)';

/** Those that rate limits and deferrals keep beyond their time. */
export const deferred = "deferred_since is not null and status in ('pending', 'rate_limited') and overdue is not true";

/** Earliest first. `$1`, `$2`: time and id of the last one seen; `$3`: the latest time. */
const earliestSql = (which: string, at: string): string => `
select t.id::text as id, ${at}::text as at from ${view('post_targets')} t
where ${which} and (${at}, t.id) > ($1::timestamptz, $2::uuid) and ${at} <= $3
order by ${at}, t.id limit 100`;
export const unfinishedSql = earliestSql(unfinished, attemptAtSql);
export const deferredSql = earliestSql(deferred, 'deferred_since');

/** @param sql `unfinishedSql` or `deferredSql` */
export const unfinishedTargets = async (
  pool: Pool,
  sql: string,
  after: UnfinishedTarget,
  before: Date,
): Promise<readonly UnfinishedTarget[]> =>
  (await pool.query<UnfinishedTarget>(sql, [after.at, after.id, before.toISOString()])).rows;

/** Whether a publisher works on the target now. */
export const isWorkedOn = async (pool: Pool, targetId: string): Promise<boolean> => {
  const { rowCount } = await pool.query('select 1 from ops.work_leases where kind = $1 and id = $2 and until > now()', [
    leaseKindOfTargets,
    targetId,
  ]);
  return rowCount !== 0;
};
