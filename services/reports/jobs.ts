import type { Pool } from 'pg';
import { dueSql, type WorkTable } from '#runtime/work/due-work.ts';
import { aheadSql, nowSql } from '#runtime/work/sandbox-clocks.ts';

/**
 * Runs to make, and runs and reports with exports to delete. A row only names the stream; the stream decides what the
 * worker does. The worker deletes the row when nothing is left to do, so a worker finds work that a crash interrupted.
 */

export interface Job {
  /** The run; for a job that deletes exports of all runs, the report. */
  readonly id: string;
  readonly reportId: string;
  readonly workspaceId: string;
  /** Changes with each event that asks for the job: work that began before the event does not delete the row. */
  readonly version: string;
  /** By the database's clock, which decides what is over, as far ahead as that of the workspace. */
  readonly now: Date;
  /** Milliseconds by which that clock is ahead of real time. */
  readonly aheadMs: number;
}

export interface Begun {
  /** This try included. */
  readonly attempts: number;
  readonly written: readonly string[];
}

const table: WorkTable = {
  name: 'ops.report_jobs',
  id: 'id',
  due: 'due_at',
  where: 'true',
  columns: `j.id::text, j.report_id::text as "reportId", j.workspace_id::text as "workspaceId", j.version::text as version,
    ${nowSql('j.workspace_id')} as now, extract(epoch from ${aheadSql('j.workspace_id')})::float8 * 1000 as "aheadMs"`,
};

/** Runs of one workspace in a search: every workspace has its turn before one has a second. */
const ofEach = 1;
const maxDue = 100;

/** One statement: a crash leaves no export that is neither kept nor marked for deletion. */
const overSql = `
with over as (
  delete from ops.report_exports where run_id in (
    select run_id from ops.report_exports where ends_at <= now() order by ends_at limit 1000 for update skip locked)
  returning run_id, report_id, workspace_id
)
insert into ops.report_jobs (id, report_id, workspace_id) select run_id, report_id, workspace_id from over
on conflict (id) do update set version = gen_random_uuid(), due_at = now()`;

export class ReportJobs {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async due(leaseKind: string): Promise<readonly Job[]> {
    const query = { name: 'reports-due', text: dueSql(table), values: [leaseKind, ofEach, maxDue] };
    return (await this.#pool.query<Job>(query)).rows;
  }

  /** Makes jobs of runs whose exports have been kept long enough. */
  async endLives(): Promise<void> {
    await this.#pool.query({ name: 'reports-over', text: overSql });
  }

  /** Counts the try before any work: else a run that kills its worker would begin for ever. Null: there is no row. */
  async begin(id: string): Promise<Begun | null> {
    const { rows } = await this.#pool.query<Begun>(
      'update ops.report_jobs set attempts = attempts + 1 where id = $1 returning attempts, written',
      [id],
    );
    return rows[0] ?? null;
  }

  /** False: the row is gone, and the caller must write no blob, because no worker would find it again. */
  async note(id: string, keys: readonly string[]): Promise<boolean> {
    const sql = 'update ops.report_jobs set written = written || $2::text[] where id = $1';
    return (await this.#pool.query(sql, [id, keys])).rowCount === 1;
  }

  /** Keeps the row if another event asked for the job: this work may not have seen that event. */
  async done({ id, version }: Job): Promise<void> {
    await this.#pool.query('delete from ops.report_jobs where id = $1 and version = $2', [id, version]);
  }

  /** @param infrastructureFault the run is not to blame, and the try is not counted against it */
  async reschedule(id: string, waitMs: number, infrastructureFault: boolean): Promise<void> {
    await this.#pool.query(
      `update ops.report_jobs set due_at = now() + $2 * interval '1 millisecond', attempts = greatest(0, attempts - $3)
       where id = $1`,
      [id, waitMs, infrastructureFault ? 1 : 0],
    );
  }

  /** A worker that lost its lease did not die: its try is not held against the run. */
  async uncount(id: string): Promise<void> {
    await this.#pool.query('update ops.report_jobs set attempts = greatest(0, attempts - 1) where id = $1', [id]);
  }

  async length(): Promise<number> {
    const { rows } = await this.#pool.query<{ n: string }>('select count(*) as n from ops.report_jobs');
    return Number(rows[0]?.n ?? 0);
  }
}
