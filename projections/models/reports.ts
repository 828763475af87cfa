import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { instantOf } from '#schemas/common.ts';
import type { reportPublic } from '#schemas/http/webhook-events/analytics.ts';
import type { Completeness, ReportDefinition, ReportEvent, ReportFormat } from '#schemas/report.ts';
import { change, defineModel, type Row, rowOf } from '../engine/model.ts';
import type { Publisher } from '../engine/publisher.ts';
import { asRow, type NewestFirst, newestFirst, type Page, type PageOf } from '../engine/rows.ts';
import { view } from '../shapes.ts';

/**
 * Saved reports with their newest runs. The row keeps where an export lies; its URL is signed when a caller fetches it.
 */

type Data<T extends ReportEvent['type']> = Extract<ReportEvent, { readonly type: T }>['data'];

interface ExportFile {
  readonly format: ReportFormat;
  readonly key: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface RunRow {
  readonly runId: string;
  /** The name that the report had when the run was requested. */
  readonly name: string;
  readonly filters: ReportDefinition['filters'];
  readonly status: 'running' | 'completed' | 'failed';
  readonly from: string;
  readonly to: string;
  readonly by: 'schedule' | 'request';
  readonly formats: readonly ReportFormat[];
  readonly startedAt: string;
  readonly asOf: string | null;
  /** Absent: the run is not completed. */
  readonly completeness?: Completeness;
  readonly exports: readonly ExportFile[];
  readonly completedAt: string | null;
  readonly failure: { readonly code: string; readonly message: string } | null;
}

interface Own {
  readonly name: string;
  readonly kind: ReportDefinition['kind'];
  readonly filters: ReportDefinition['filters'];
  readonly span: ReportDefinition['window'];
  readonly formats: readonly ReportFormat[];
  readonly schedule: ReportDefinition['schedule'];
  /** Null: the definition does not say. */
  readonly bom: boolean | null;
  /** Newest first, `maxRuns` of them; the stream has all. */
  readonly runs: readonly RunRow[];
  readonly removed_at: string | null;
}
export type ReportRow = Row<Own>;

/** How many runs of a report are shown. */
export const maxRuns = 100;

const withRun = (row: Own, runId: string, end: (run: RunRow) => RunRow): Own => ({
  ...row,
  runs: row.runs.map((run) => (run.runId === runId && run.status === 'running' ? end(run) : run)),
});

const begun = (
  { name, filters }: Own,
  { runId, from, to, by, formats }: Data<'ReportRunRequested'>,
  startedAt: string,
): RunRow => ({
  ...{ runId, name, filters, status: 'running', from, to, by, formats, startedAt },
  ...{ asOf: null, exports: [], completedAt: null, failure: null },
});

/** A saved report. The payload never shows where an export lies: receivers request its URL from the API. */

interface Run {
  readonly runId: string;
  readonly clientId: string | null;
}

interface Report {
  readonly clientId: string | null;
  /** The newest runs, each with the client of the report at that time. */
  readonly runs: readonly Run[];
}

const maxRunsOfSubject = 20;

const clientOf = ({ clientId, runs }: Report, runId: string): string | null => {
  const run = runs.findLast((one) => one.runId === runId);
  return run === undefined ? clientId : run.clientId;
};

type Payloads = Pick<typeof reportPublic, 'report.run.completed' | 'report.run.failed'>;

const reportPublisher: Publisher<Payloads, ReportEvent, Report> = {
  rules: {
    ReportDefined: 'the definition is internal to the agency; GET /reports shows it',
    ReportRunRequested: 'an intermediate step; report.run.completed or report.run.failed reports the result',
    ReportRunCompleted: [
      {
        type: 'report.run.completed',
        ofStream: ({ id, data: { runId, asOf, exports, completeness } }, about) => {
          const clientId = clientOf(about, runId);
          // The file that is fetched when the caller names no format; the schema guarantees one.
          const [file] = exports as [(typeof exports)[number]];
          const { format, bytes, sha256 } = file;
          return { reportId: id, runId, clientId, asOf, format, bytes, sha256, completeness };
        },
      },
    ],
    ReportRunFailed: [
      {
        type: 'report.run.failed',
        ofStream: ({ id, data: { runId, code, message } }, about) => ({
          reportId: id,
          runId,
          clientId: clientOf(about, runId),
          failure: { code, message },
        }),
      },
    ],
    ReportRemoved: 'the caller has the answer',
  },
  evolve: (subject, event) => {
    if (event.type === 'ReportDefined') {
      return { runs: subject?.runs ?? [], clientId: event.data.definition.filters.clientId };
    }
    if (event.type !== 'ReportRunRequested' || subject === null) return subject;
    const { clientId, runs } = subject;
    return { clientId, runs: [...runs, { runId: event.data.runId, clientId }].slice(-maxRunsOfSubject) };
  },
};

export const reports = defineModel<Own, ReportEvent>({
  name: 'reports',
  kind: 'report',
  publisher: reportPublisher,
  columns: {
    name: 'text',
    kind: 'text',
    filters: 'jsonb',
    span: 'text',
    formats: 'text[]',
    schedule: 'jsonb',
    bom: 'bool',
    runs: 'jsonb',
    removed_at: 'timestamptz',
  },
  indexes: [{ on: '(workspace_id, created_at, id) where removed_at is null' }],
  on: {
    ReportDefined: (row, { definition: { window, bom = null, ...definition } }) => ({
      ...definition,
      span: window,
      bom,
      runs: row?.runs ?? [],
      removed_at: null,
    }),
    ReportRunRequested: change((row, data, { metadata }) => ({
      ...row,
      runs: [begun(row, data, instantOf(metadata)), ...row.runs].slice(0, maxRuns),
    })),
    ReportRunCompleted: change((row, { runId, asOf, exports, completeness }, { metadata }) =>
      withRun(row, runId, (run) => ({
        ...run,
        status: 'completed',
        asOf,
        exports,
        completedAt: instantOf(metadata),
        completeness,
      })),
    ),
    ReportRunFailed: change((row, { runId, code, message }) =>
      withRun(row, runId, (run) => ({ ...run, status: 'failed', failure: { code, message } })),
    ),
    ReportRemoved: change((row, _data, { metadata }) => ({ ...row, removed_at: instantOf(metadata) })),
  },
});

/** Returns a removed report too; its `removed_at` is set. */
export const getReport = async (knex: Knex, workspaceId: string, id: string): Promise<ReportRow | null> => {
  const row = await knex(`${view('reports')} as reports`)
    .where({ id, workspace_id: workspaceId })
    .first();
  return row === undefined ? null : asRow(reports, row);
};

/**
 * A run as a row would show it, whatever its age.
 * @param events of the report's stream, from the first one on
 */
export const runOf = (events: readonly DecodedEvent[], runId: string): RunRow | null =>
  rowOf(
    reports,
    events.filter(({ type, data }) => type === 'ReportDefined' || data.runId === runId),
  )?.runs[0] ?? null;

/** Newest first, without the removed ones. */
export const listReports = async (
  knex: Knex,
  workspaceId: string,
  page: PageOf<NewestFirst>,
): Promise<Page<ReportRow>> =>
  newestFirst(
    knex(`${view('reports')} as reports`)
      .where({ workspace_id: workspaceId })
      .whereNull('removed_at'),
    reports,
    page,
  );

/** A report as an operator sees it. */
type ListedReport = Pick<ReportRow, 'name' | 'kind' | 'schedule' | 'runs'> & {
  readonly reportId: string;
  readonly window: ReportRow['span'];
};

/** The newest of a workspace, without the removed ones. */
export const newestReports = async (
  pool: Pool,
  workspaceId: string,
  limit: number,
): Promise<readonly ListedReport[]> => {
  const { rows } = await pool.query<ListedReport>(
    `select id::text as "reportId", name, kind, span as "window", schedule, runs from ${view('reports')} as reports
     where workspace_id = $1 and removed_at is null order by created_at desc, id desc limit ${limit}`,
    [workspaceId],
  );
  return rows;
};
