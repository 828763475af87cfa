import { uuidv5 } from '#domain/ids.ts';
import { exportsEndAt, report } from '#domain/report.ts';
import { workspace } from '#domain/workspace.ts';
import type { NewestFirst } from '#projections/engine/rows.ts';
import { getClient } from '#projections/models/clients.ts';
import {
  maxRuns,
  getReport as queryReport,
  type ReportRow,
  type RunRow,
  listReports as rowsOf,
  runOf,
} from '#projections/models/reports.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { IdParams } from '#schemas/http/common.ts';
import {
  ExportParams,
  ExportQuery,
  Report,
  ReportExport,
  ReportQuery,
  ReportRunCreate,
  ReportSummary,
  RequestedRun,
} from '#schemas/http/report.ts';
import { exportDays, type ReportFormat } from '#schemas/report.ts';
import { listPage, newestFirst } from '../call/cursor.ts';
import { type Call, operation, type Tag } from '../call/operation.ts';
import { notFound, Refusal } from '../call/refusal.ts';
import { lastOf, readRow, writtenRow } from '../call/rows.ts';
import { unavailable } from '../media/checks.ts';
import { exampleExport, exampleReport, exampleRun, exampleSummary } from './examples.ts';
import { maxWaiting, requireRoomForRun } from './run-places.ts';

export const reportsTag: Tag = {
  place: 100,
  name: 'reports',
  noun: 'report',
  about: 'Saved reports, their runs and their exported files.',
};

/** The longest part of the report's name in a file name, so that the days and the extension are never cut off. */
const maxOfName = 150;

/** The file name of a downloaded export. */
const fileNameOf = ({ name, from, to }: Pick<RunRow, 'name' | 'from' | 'to'>, format: ReportFormat): string => {
  const short = name.trim().slice(0, maxOfName);
  // Do not cut a surrogate pair in half.
  return `${short.replace(/[\ud800-\udbff]$/, '').trim()} ${from} ${to}.${format}`;
};

/** @throws Refusal 404, also for one that was removed */
const readReport = async (
  call: Pick<Call<{ readonly id: string }>, 'deps' | 'workspaceId' | 'params' | 'behind'>,
): Promise<ReportRow> => {
  const { deps, workspaceId } = call;
  const row = await readRow(call, 'report', ['reports', 'workspace'], (id) => queryReport(deps.knex, workspaceId, id));
  if (row.removed_at !== null) throw notFound('report');
  return row;
};

const showSummary = (row: ReportRow) => ({
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
const readRun = async ({ deps }: Pick<Call, 'deps'>, row: ReportRow, runId: string): Promise<RunRow | null> => {
  const shown = row.runs.find((run) => run.runId === runId);
  if (shown !== undefined || row.runs.length < maxRuns) return shown ?? null;
  return runOf(await deps.store.readStream(`report-${row.id}`), runId);
};

/** When the exports of a run are deleted, ISO 8601. Null: the run has none, or none any more. */
type KeptUntil = (run: RunRow) => string | null;

/**
 * The end of the exports for runs of one workspace. It follows from their age and their clients, whether or not the
 * files are deleted yet.
 */
const keptUntil = async (
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
const showRun = ({ runId, name, status, by, from, to, asOf, formats, ...run }: RunRow, exportsUntil: string | null) => {
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

const showReport = (row: ReportRow, until: KeptUntil) => ({
  ...showSummary(row),
  runs: row.runs.map((run) => showRun(run, until(run))),
});

export const getReport = operation({
  id: 'getReport',
  method: 'GET',
  path: '/reports/{id}',
  tag: reportsTag,
  summary: 'Get a saved report and its runs',
  description:
    'With its newest 100 runs. A run is `running` until the figures of its days are final and its files are made; then the event `report.run.completed` or `report.run.failed` tells how it ended.',
  scope: 'reports.read',
  limited: 'refused',
  idempotent: 'none',
  cost: 1,
  etag: true,
  params: IdParams,
  answer: Report,
  codes: [],
  example: { data: exampleReport },
  handle: async (call) => {
    const row = await readReport(call);
    return { data: showReport(row, await keptUntil(call, row.runs)), revision: row.revision };
  },
});

export const listReports = operation({
  id: 'listReports',
  method: 'GET',
  path: '/reports',
  tag: reportsTag,
  summary: 'List saved reports, newest first',
  description: 'The list leaves out their runs; GET /reports/{id} has them.',
  scope: 'reports.read',
  limited: 'refused',
  idempotent: 'none',
  cost: 1,
  query: ReportQuery,
  answer: ReportSummary,
  list: true,
  codes: [],
  example: { data: exampleSummary },
  handle: async (call) => {
    await call.behind(['reports']);
    const { workspaceId } = call;
    return listPage('listReports', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        rowsOf(knex, workspaceId, page),
      keyOf: newestFirst,
      show: showSummary,
    });
  },
});

const readableMs = 15 * 60_000;

export const getReportExport = operation({
  id: 'getReportExport',
  method: 'GET',
  path: '/reports/{id}/exports/{runId}',
  tag: reportsTag,
  summary: 'Get the address of an export of a completed run',
  description: `The address is presigned: its holder may read the file for 15 minutes, and each call gives a new one. The call also finds a run that GET /reports/{id} no longer shows. A run that is still running, or has failed, is refused with \`run_not_completed\`. The files are kept for ${exportDays} days after the run was completed, or until its client is erased; then the answer is 404.`,
  scope: 'reports.read',
  limited: 'refused',
  idempotent: 'none',
  cost: 1,
  params: ExportParams,
  query: ExportQuery,
  answer: ReportExport,
  codes: ['run_not_completed'],
  example: { data: exampleExport },
  handle: async (call) => {
    const { deps, params, query, realNow } = call;
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
    const expiresAt = new Date(Date.parse(realNow) + readableMs);
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

export const runReport = operation({
  id: 'runReport',
  method: 'POST',
  path: '/reports/{id}/runs',
  tag: reportsTag,
  summary: 'Start a run of a saved report now',
  description: `The run counts the days of the report's \`window\` before today, in the zone of the workspace; its schedule goes on as it is. The answer comes at once, with the run as \`running\`: it waits until the figures of its days are final, at most 6 hours, and is then made. The event \`report.run.completed\` or \`report.run.failed\` tells how it ended; then GET /reports/{id}/exports/{runId} has the address of its files. At most ${maxWaiting} requested runs of a workspace wait at once.`,
  scope: 'reports.manage',
  limited: 'refused',
  idempotent: 'accepted',
  cost: 10,
  bodyOptional: true,
  params: IdParams,
  body: ReportRunCreate,
  answer: RequestedRun,
  codes: ['too_many_runs', 'stream_full'],
  example: { body: {}, data: exampleRun },
  handle: async (call) => {
    const { deps, workspaceId, params, body, context, now } = call;
    const placed = new Set<string>();
    const { events, replayed } = await call.stream(report).act({
      optional: true,
      accept: async () => {
        const { state } = await deps.store.load(workspace, workspaceId);
        if (state.status === 'none') throw new BrokenInvariant(`there is no workspace ${workspaceId}`);
        // Of the key, so that callers who repeat a call while it is under way take one place.
        const runId = context.keyHmac === undefined ? uuidv7() : uuidv5(params.id, `requested\n${context.keyHmac}`);
        return { runId, at: now, timezone: state.timezone, formats: body.formats ?? null };
      },
      command: (decided) => ({ type: 'RequestRun', by: 'request', ...decided }),
      rule: async (_loaded, { runId }) => {
        // Once for the call: the holder of a place must not wait for it again when another append came first.
        if (!placed.has(runId)) await requireRoomForRun(call, params.id, runId);
        placed.add(runId);
      },
    });
    const run = writtenRow(runOf(events, String(lastOf(events).data.runId)));
    return { data: { object: 'report_run', reportId: params.id, ...showRun(run, null) }, replayed };
  },
});
