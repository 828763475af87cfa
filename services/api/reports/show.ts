import { exportsEndAt } from '#domain/report.ts';
import { getClient } from '#projections/models/clients.ts';
import { getReport, maxRuns, type ReportRow, type RunRow, runOf } from '#projections/models/reports.ts';
import type { Call } from '../operation.ts';
import { notFound } from '../refusal.ts';
import { readRow } from '../rows.ts';

/** A saved report as its owner sees it, and the one that a path names. */

/** @throws Refusal 404, also for one that was removed */
export const readReport = async (
  call: Pick<Call<{ readonly id: string }>, 'deps' | 'workspaceId' | 'params' | 'behind'>,
): Promise<ReportRow> => {
  const { deps, workspaceId } = call;
  const row = await readRow(call, 'report', ['reports', 'workspace'], (id) => getReport(deps.knex, workspaceId, id));
  if (row.removed_at !== null) throw notFound('report');
  return row;
};

export const showSummary = (row: ReportRow) => ({
  id: row.id,
  object: 'report' as const,
  name: row.name,
  kind: row.kind,
  filters: row.filters,
  window: row.span,
  formats: row.formats,
  schedule: row.schedule,
  bom: row.bom ?? true,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  revision: row.revision,
});

/**
 * One of its runs: from the row, or from the stream when the row no longer has it. Null: the report has no such run.
 */
export const readRun = async ({ deps }: Pick<Call, 'deps'>, row: ReportRow, runId: string): Promise<RunRow | null> => {
  const shown = row.runs.find((run) => run.runId === runId);
  if (shown !== undefined || row.runs.length < maxRuns) return shown ?? null;
  return runOf(await deps.store.readStream(`report-${row.id}`), runId);
};

/** When the exports of a run are deleted, ISO 8601. Null: the run has none, or none any more. */
export type KeptUntil = (run: RunRow) => string | null;

/**
 * The end of the exports for runs of one workspace. It follows from their age and their clients, whether or not the
 * files are deleted yet.
 */
export const keptUntil = async (
  { deps, workspaceId, now }: Pick<Call, 'deps' | 'workspaceId' | 'now'>,
  runs: readonly RunRow[],
): Promise<KeptUntil> => {
  const clientIds = [...new Set(runs.flatMap(({ filters: { clientId } }) => clientId ?? []))];
  const clients = await Promise.all(clientIds.map((id) => getClient(deps.knex, workspaceId, id)));
  const erased = new Set(clients.flatMap((client) => (client?.erased ? [client.id] : [])));
  return ({ completedAt, filters: { clientId } }) => {
    if (completedAt === null || (clientId !== null && erased.has(clientId))) return null;
    const until = exportsEndAt(completedAt);
    return Date.parse(until) > Date.parse(now) ? until : null;
  };
};

/** An export without the address of its file. */
export const showRun = (
  { runId, name, status, by, from, to, asOf, formats, ...run }: RunRow,
  exportsUntil: string | null,
) => {
  const exports = exportsUntil === null ? [] : run.exports;
  const [first] = exports;
  return {
    ...{ runId, name, status, by, from, to, asOf },
    completeness: run.completeness ?? null,
    format: first?.format ?? formats[0],
    bytes: first?.bytes ?? null,
    sha256: first?.sha256 ?? null,
    exports: exports.map(({ format, contentType, bytes, sha256 }) => ({ format, contentType, bytes, sha256 })),
    exportsUntil,
    startedAt: run.startedAt,
    completedAt: run.completedAt,
    failure: run.failure,
  };
};

export const showReport = (row: ReportRow, until: KeptUntil) => ({
  ...showSummary(row),
  runs: row.runs.map((run) => showRun(run, until(run))),
});
