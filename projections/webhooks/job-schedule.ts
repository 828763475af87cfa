import type { Pool } from 'pg';

/**
 * Picks the workspace whose webhook job runs next: the one that has waited longest. Each workspace with jobs has one
 * row, whatever their number, so the pick costs the same with 100,000 jobs of one tenant. A claim lasts for one step of
 * one job; then the workspace goes behind the others.
 *
 * A trigger keeps the rows, so that every writer of a job schedules its workspace. A claim is a lease with a deadline
 * and not a lock: the dispatcher, which writes jobs, would wait for the process that runs one.
 */

export interface ScheduledWorkspace {
  readonly workspaceId: string;
  readonly version: string;
}

/** A workspace is leased for this long: a process that crashes in a step delays its workspace by this, milliseconds. */
const leaseMs = 5_000;

/** NOTE: `now()` can use the index; `clock_timestamp()` would read all of it while nothing is due. */
const takeSql = `
with longest as (
  select workspace_id from ops.webhook_job_schedule where next_at <= now() order by next_at limit 1 for update skip locked
)
update ops.webhook_job_schedule t set next_at = now() + $1 * interval '1 millisecond'
from longest l where t.workspace_id = l.workspace_id
returning t.workspace_id as "workspaceId", t.version::text`;

/** Where a job arrived meanwhile the version has changed, and the row stays. */
const endSql = `
with next as materialized (
  select min(not_before) as at from ops.webhook_jobs where workspace_id = $1 and status = 'running'
), gone as (
  delete from ops.webhook_job_schedule t using next n where t.workspace_id = $1 and t.version = $2::int8 and n.at is null
)
update ops.webhook_job_schedule t
set next_at = greatest(n.at, clock_timestamp() + $3 * interval '1 millisecond')
from next n where t.workspace_id = $1 and t.version = $2::int8 and n.at is not null`;

/** Milliseconds until the next step is due; null when there is none. */
export const nextStepMs = async (pool: Pick<Pool, 'query'>): Promise<number | null> => {
  const { rows } = await pool.query<{ ms: number | null }>(
    'select extract(epoch from min(next_at) - clock_timestamp())::float8 * 1000 as ms from ops.webhook_job_schedule',
  );
  return rows[0]?.ms ?? null;
};

/** Null when no step is due, or other processes hold the workspaces whose steps are. */
export const claimWorkspace = async (pool: Pick<Pool, 'query'>): Promise<ScheduledWorkspace | null> => {
  const { rows } = await pool.query<ScheduledWorkspace>(takeSql, [leaseMs]);
  return rows[0] ?? null;
};

/**
 * Puts the workspace behind the others, or deletes its row where no job is left.
 * @param restMs the shortest time until its next step
 */
export const releaseWorkspace = async (
  pool: Pick<Pool, 'query'>,
  { workspaceId, version }: ScheduledWorkspace,
  restMs: number,
): Promise<void> => {
  await pool.query(endSql, [workspaceId, version, restMs]);
};
