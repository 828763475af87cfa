import type { Pool } from 'pg';
import { Rejection } from '#domain/decider.ts';
import { report } from '#domain/report.ts';
import { getReport } from '#projections/models/reports.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { countingQueue } from '../call/call-queue.ts';
import type { Call } from '../call/operation.ts';

/**
 * Limits the runs of a workspace that callers have asked for and that have not ended. Its reports are streams of their
 * own, and an append to one cannot count the runs of the others: the caller first takes a place in a table, one caller
 * of a workspace at a time. A place is given back when somebody finds the workspace full and the run ended. If we die
 * between the place and the append, the place lapses.
 */

export const maxWaiting = 20;
/** No call runs this long after it took its place, milliseconds: a run that no stream has by then is never asked for. */
const lapseMs = 60_000;
/** Any constant; the lock has the workspace for its second half. */
const lockClass = 7_070_719;

const inLine = countingQueue('requests of report runs');

/** False when there is no room. Taking the same place again succeeds. */
const takePlace = (pool: Pool, workspaceId: string, reportId: string, runId: string): Promise<boolean> =>
  inTransaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1, hashtext($2))', [lockClass, workspaceId]);
    const own = await tx.query('update ops.report_run_places set taken_at = now() where run_id = $1', [runId]);
    if (own.rowCount === 1) return { commit: true, result: true };
    const taken = await tx.query(
      `insert into ops.report_run_places (run_id, report_id, workspace_id) select $1, $2, $3
       where (select count(*) from ops.report_run_places where workspace_id = $3) < $4`,
      [runId, reportId, workspaceId, maxWaiting],
    );
    return { commit: true, result: taken.rowCount === 1 };
  });

interface Place {
  readonly runId: string;
  readonly reportId: string;
  /** Older than any call that could still ask for the run. */
  readonly isOld: boolean;
}

const placesSql = `
select run_id::text as "runId", report_id::text as "reportId", taken_at < now() - $2 * interval '1 millisecond' as "isOld"
from ops.report_run_places where workspace_id = $1`;

/** Gives back the places of runs that have ended, or were never asked for. At most `maxWaiting` rows and streams. */
const giveBack = async ({ deps, workspaceId }: Pick<Call, 'deps' | 'workspaceId'>): Promise<void> => {
  const { pool, knex, store } = deps;
  const { rows } = await pool.query<Place>(placesSql, [workspaceId, lapseMs]);
  const isOpen = async ({ runId, reportId, isOld }: Place): Promise<boolean> => {
    const row = await getReport(knex, workspaceId, reportId);
    if (row !== null && row.removed_at !== null) return false;
    const shown = row?.runs.find((run) => run.runId === runId);
    if (shown !== undefined) return shown.status === 'running';
    if (!isOld) return true;
    // The row shows the newest runs alone, and may be behind: the stream decides.
    const { state } = await store.load(report, reportId);
    return state.status === 'live' && state.runs.get(runId)?.status === 'open';
  };
  const over: string[] = [];
  for (const place of rows) if (!(await isOpen(place))) over.push(place.runId);
  await pool.query('delete from ops.report_run_places where run_id = any($1)', [over]);
};

/** @throws Rejection `too_many_runs` */
export const requireRoomForRun = async (
  call: Pick<Call, 'deps' | 'workspaceId' | 'behind'>,
  reportId: string,
  runId: string,
): Promise<void> => {
  const { pool } = call.deps;
  const take = () => inLine(pool, call.workspaceId, () => takePlace(pool, call.workspaceId, reportId, runId));
  if (!(await take())) {
    await call.behind(['reports']);
    await giveBack(call);
    if (!(await take()))
      throw new Rejection('too_many_runs', `At most ${maxWaiting} requested runs of a workspace wait at once.`);
  }
  faultPoint('reports:after-place');
};
