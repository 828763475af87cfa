import type { Pool } from 'pg';
import { uuidv5 } from '#domain/ids.ts';
import { report } from '#domain/report.ts';
import { lastInstant, nextInstant } from '#domain/report-windows.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { aheadSql, nowSql } from '#runtime/work/sandbox-clocks.ts';
import { Rest, type WakeSignal } from '#runtime/work/wake-signal.ts';
import { type ReportDeps, reportContext } from './deps.ts';
import { endOf } from './read.ts';

/**
 * Reports that run by schedule. The id of a run follows from the report and its instant: a process that repeats a
 * request, after a crash or beside another, asks for the same run again, and the decider yields no event.
 */

interface Planned {
  readonly reportId: string;
  readonly workspaceId: string;
  readonly after: Date;
  /** Changes with each event that may change the schedule. */
  readonly version: string;
  /** By the database's clock, which decides what is due, as far ahead as that of the workspace. */
  readonly now: Date;
}

const dueSql = `
select report_id::text as "reportId", workspace_id::text as "workspaceId", after, version::text as version,
  ${nowSql('workspace_id')} as now
from ops.report_schedules
where (due_at is null or due_at <= now()) and look_at <= now()
order by due_at nulls first, look_at limit 100`;

/**
 * Changes nothing where an event has changed the schedule meanwhile. A report runs by the clock of its workspace; the row says
 * when that is in real time.
 */
const settleSql = `
update ops.report_schedules set due_at = $2::timestamptz - ${aheadSql('workspace_id')}, after = $3, look_at = now() where report_id = $1 and version = $4`;
/** Under the lock of the row: a move of the clock comes before both statements, or brings the row nearer after them. */
const planNext = (pool: Pool, [reportId, ...values]: readonly [string, string | null, string, string]): Promise<null> =>
  inTransaction(pool, async (tx) => {
    await tx.query('select from ops.report_schedules where report_id = $1 for update', [reportId]);
    await tx.query(settleSql, [reportId, ...values]);
    return { commit: true, result: null };
  });
const endSql = 'delete from ops.report_schedules where report_id = $1 and version = $2';
/** A schedule that could not be settled rests. */
const rescheduleSql = `update ops.report_schedules set look_at = now() + interval '30 seconds' where report_id = $1`;

export const runIdOf = (reportId: string, instant: string): string => uuidv5(reportId, instant);

/** Requests the runs that are due now. True: there may be more. */
export const schedule = async (deps: ReportDeps, signal: AbortSignal): Promise<boolean> => {
  const { pool, logger } = deps;
  const { rows } = await pool.query<Planned>(dueSql);
  for (const row of rows) {
    if (signal.aborted) return false;
    try {
      await settle(deps, row);
    } catch (error) {
      logger.warn({ err: error, reportId: row.reportId }, 'the schedule of a report could not be evaluated');
      await pool.query(rescheduleSql, [row.reportId]);
    }
  }
  return rows.length > 0;
};

const settle = async (deps: ReportDeps, row: Planned): Promise<void> => {
  const { pool, store, now = Date.now } = deps;
  const { reportId, workspaceId, version } = row;
  const loaded = await store.load(report, reportId);
  const { state } = loaded;
  const plan = state.status === 'live' ? state.definition.schedule : null;
  if (state.status !== 'live' || plan === null) {
    await pool.query(endSql, [reportId, version]);
    return;
  }
  const { clientId } = state.definition.filters;
  if (clientId !== null && (await endOf(store, workspaceId, clientId)) !== null) {
    // If the process dies before it deletes the row, the next search finds no schedule in the stream and deletes the
    // row.
    const command = { type: 'EndSchedule', clientId } as const;
    await execute(store, report, reportId, command, reportContext(loaded, row, now), { loaded });
    await pool.query(endSql, [reportId, version]);
    return;
  }
  const timezone = await zoneOf(deps, workspaceId);
  const seen = row.now.toISOString();
  const after = new Date(Math.max(row.after.getTime(), Date.parse(state.scheduledSince))).toISOString();
  // Missed runs collapse into the latest one.
  const instant = lastInstant(plan, timezone, after, seen);
  if (instant === null) {
    await planNext(pool, [reportId, nextInstant(plan, timezone, after), after, version]);
    return;
  }
  const command = {
    type: 'RequestRun',
    runId: runIdOf(reportId, instant),
    at: instant,
    timezone,
    by: 'schedule',
    formats: null,
  } as const;
  await execute(store, report, reportId, command, reportContext(loaded, row, now), { loaded });
  faultPoint('reports:after-request');
  await planNext(pool, [reportId, nextInstant(plan, timezone, seen), seen, version]);
};

const zoneOf = async ({ store }: ReportDeps, workspaceId: string): Promise<string> => {
  const { state } = await store.load(workspace, workspaceId);
  if (state.status === 'none') throw new BrokenInvariant(`there is no workspace ${workspaceId}`);
  return state.timezone;
};

/** Until the signal aborts. */
export const runSchedules = async (deps: ReportDeps, wakeSignal: WakeSignal, signal: AbortSignal): Promise<void> => {
  const { logger, pollMs = 1_000 } = deps;
  const isOver = (): boolean => signal.aborted;
  const rest = new Rest(pollMs);
  signal.addEventListener('abort', () => wakeSignal.wake(), { once: true });
  while (!isOver()) {
    const more = await schedule(deps, signal).catch((error: unknown) => {
      logger.warn({ err: error }, 'looking for reports that are due failed');
      return false;
    });
    const waitMs = rest.after(more);
    if (!more) await wakeSignal.wait(waitMs, isOver);
  }
};
