import { ExportParams, ExportQuery, ReportExport } from '#schemas/http/report.ts';
import { exportDays } from '#schemas/report.ts';
import { unavailable } from '../media/blobs.ts';
import { operation } from '../operation.ts';
import { notFound, Refusal } from '../refusal.ts';
import { exampleExport } from '../reports/examples.ts';
import { fileNameOf } from '../reports/file-name.ts';
import { keptUntil, readReport, readRun } from '../reports/show.ts';

const readableMs = 15 * 60_000;

export const getReportExport = operation({
  id: 'getReportExport',
  method: 'GET',
  path: '/reports/{id}/exports/{runId}',
  tag: 'reports',
  summary: 'Get the address of an export of a completed run',
  description: `The address is presigned: its holder may read the file for 15 minutes, and each call gives a new one. The call also finds a run that GET /reports/{id} no longer shows. A run that is still running, or has failed, is refused with \`run_not_completed\`. The files are kept for ${exportDays} days after the run was completed, or until its client is erased; then the answer is 404.`,
  scope: 'reports.read',
  idempotent: 'none',
  cost: 1,
  params: ExportParams,
  query: ExportQuery,
  answer: ReportExport,
  codes: ['run_not_completed'],
  example: { data: exampleExport },
  handle: async (call) => {
    const { deps, params, query, now } = call;
    const row = await readReport(call);
    const run = await readRun(call, row, params.runId);
    if (run === null) throw notFound('run of this report');
    if (run.status !== 'completed') {
      const words = run.status === 'failed' ? 'The run has failed: it has no export.' : 'The run is not complete yet.';
      throw new Refusal('run_not_completed', words, { extra: { runStatus: run.status } });
    }
    const exportsUntil = (await keptUntil(call, [run]))(run);
    if (exportsUntil === null) throw new Refusal('not_found', 'The exports of this run are deleted.');
    const wanted = query.format ?? run.formats[0];
    const file = run.exports.find(({ format }) => format === wanted);
    if (file === undefined) throw notFound('export of this run');
    const { format, key, contentType, bytes, sha256 } = file;
    const expiresAt = new Date(Date.parse(now) + readableMs);
    const url = await unavailable(() =>
      deps.blobs.presignGet(key, { contentType, expiresAt, fileName: fileNameOf(run, format) }),
    );
    return {
      data: {
        object: 'report_export',
        reportId: row.id,
        runId: run.runId,
        format,
        url,
        expiresAt: expiresAt.toISOString(),
        exportsUntil,
        contentType,
        bytes,
        sha256,
      },
    };
  },
});
