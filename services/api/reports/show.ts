import { getReport, type ReportRow, type RunRow } from '#projections/reports.ts';
import type { Call } from '../operation.ts';
import { notFound } from '../refusal.ts';
import { readRow } from '../rows.ts';

/** A saved report as its owner sees it, and the one that a path names. */

/** @throws Refusal 404, also for one that was removed */
export const readReport = async (
  call: Pick<Call<{ readonly id: string }>, 'deps' | 'workspaceId' | 'params' | 'behind'>,
): Promise<ReportRow> => {
  const { deps, workspaceId } = call;
  const row = await readRow(call, 'report', ['reports'], (id) => getReport(deps.knex, workspaceId, id));
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
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  revision: row.revision,
});

/** Never where an export lies. */
const showRun = ({ runId, status, by, from, to, asOf, formats, exports, ...run }: RunRow) => {
  const [first] = exports;
  return {
    ...{ runId, status, by, from, to, asOf },
    format: first?.format ?? formats[0],
    bytes: first?.bytes ?? null,
    sha256: first?.sha256 ?? null,
    exports: exports.map(({ format, contentType, bytes, sha256 }) => ({ format, contentType, bytes, sha256 })),
    startedAt: run.startedAt,
    completedAt: run.completedAt,
    failure: run.failure,
  };
};

export const showReport = (row: ReportRow) => ({ ...showSummary(row), runs: row.runs.map(showRun) });
