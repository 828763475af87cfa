import { uuidv5 } from '#domain/ids.ts';
import { report } from '#domain/report.ts';
import { nextInstant } from '#domain/report-windows.ts';
import { workspace } from '#domain/workspace.ts';
import type { Bell } from '#runtime/bell.ts';
import { execute } from '#runtime/execute.ts';
import { faultPoint } from '#runtime/fault-point.ts';
import { serviceContext } from './context.ts';
import type { ReportDeps } from './deps.ts';

/**
 * Reports that run by themselves. The id of a run follows from the report and its instant: whoever dies between the request
 * and the next instant, or does the same beside us, asks for the same run again, and that is none.
 */

interface Planned {
  readonly reportId: string;
  readonly workspaceId: string;
  readonly after: Date;
  readonly dueAt: Date | null;
  readonly heard: string;
  /** By the database's clock, which says what is due. */
  readonly now: Date;
}

const dueSql = `
select report_id::text as "reportId", workspace_id::text as "workspaceId", after, due_at as "dueAt", heard::text, now() as now
from ops.report_schedules
where (due_at is null or due_at <= now()) and look_at <= now()
order by due_at nulls first, look_at limit 100`;

/** What was heard meanwhile wins. `$3`: null leaves `after` as it is. */
const settleSql = `
update ops.report_schedules set due_at = $2, after = coalesce($3, after), look_at = now()
where report_id = $1 and heard = $4`;
/** How long one that could not be looked at is left alone. */
const putOffSql = `update ops.report_schedules set look_at = now() + interval '30 seconds' where report_id = $1`;

export const runIdOf = (reportId: string, instant: string): string => uuidv5(reportId, instant);

/** Applies once whatever is due now. True: there may be more. */
export const schedule = async (deps: ReportDeps, signal: AbortSignal): Promise<boolean> => {
  const { pool, logger } = deps;
  const { rows } = await pool.query<Planned>(dueSql);
  for (const row of rows) {
    if (signal.aborted) return false;
    try {
      await settle(deps, row);
    } catch (error) {
      logger.warn({ err: error, reportId: row.reportId }, 'a schedule of a report could not be looked at');
      await pool.query(putOffSql, [row.reportId]);
    }
  }
  return rows.length > 0;
};

const settle = async (deps: ReportDeps, row: Planned): Promise<void> => {
  const { pool, store, now = Date.now } = deps;
  const { reportId, workspaceId, heard } = row;
  const loaded = await store.load(report, reportId);
  const { state } = loaded;
  const plan = state.status === 'live' ? state.definition.schedule : null;
  if (plan === null) {
    await pool.query('delete from ops.report_schedules where report_id = $1 and heard = $2', [reportId, heard]);
    return;
  }
  const timezone = await zoneOf(deps, workspaceId);
  const instant = nextInstant(plan, timezone, row.after.toISOString());
  if (row.dueAt?.toISOString() !== instant) {
    await pool.query(settleSql, [reportId, instant, null, heard]);
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
  await execute(store, report, reportId, command, serviceContext(loaded, workspaceId, now), { loaded });
  faultPoint('reports:after-request');
  // Instants that nobody was up for are not made up for: one run is, the latest that was promised first.
  const after = new Date(Math.max(row.now.getTime(), Date.parse(instant))).toISOString();
  await pool.query(settleSql, [reportId, nextInstant(plan, timezone, after), after, heard]);
};

const zoneOf = async ({ store }: ReportDeps, workspaceId: string): Promise<string> => {
  const { state } = await store.load(workspace, workspaceId);
  if (state.status === 'none') throw new Error(`there is no workspace ${workspaceId}`);
  return state.timezone;
};

/** Until the signal aborts. */
export const runSchedules = async (deps: ReportDeps, bell: Bell, signal: AbortSignal): Promise<void> => {
  const { logger, pollMs = 1_000 } = deps;
  const isOver = (): boolean => signal.aborted;
  signal.addEventListener('abort', () => bell.ring(), { once: true });
  while (!isOver()) {
    const more = await schedule(deps, signal).catch((error: unknown) => {
      logger.warn({ err: error }, 'looking for reports that are due failed');
      return false;
    });
    if (!more) await bell.wait(pollMs, isOver);
  }
};
