import { Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { LocalDate } from '#schemas/insights.ts';
import { ClosedEnum, Named, OpenEnum, said } from '#schemas/published.ts';
import { Completeness, exportDays, ReportFormat, reportFormats } from '#schemas/report.ts';
import { Maybe, paging, stamps } from './common.ts';

/** Saved reports, their runs and exports, as callers see them. */

export const ReportQuery = Type.Object(paging);
export const ExportParams = Type.Object({ id: Uuid, runId: Uuid });

const FormatInput = ClosedEnum('ReportFormatInput', reportFormats, 'The form of an exported file.');
const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
const Bytes = Type.Integer({ minimum: 0 });
const Failure = Named('ReportFailure', Type.Object({ code: Type.String(), message: Type.String() }));

export const ExportQuery = Type.Object({
  format: Maybe(said(FormatInput, 'Default: the first format of the run.')),
});

const life = `${exportDays} days after the run was completed, or when the client that it is about is erased`;

const definition = {
  id: Uuid,
  object: Type.Literal('report'),
  name: Type.String(),
  kind: OpenEnum('ReportKind', ['workspace', 'client', 'account'], 'What a report is about.'),
  filters: Named(
    'ReportFilters',
    Type.Object({
      clientId: Nullable(Uuid),
      socialAccountId: Nullable(Uuid),
      platform: Nullable(Platform),
    }),
  ),
  window: OpenEnum(
    'ReportWindow',
    ['last_7_days', 'last_30_days', 'last_90_days', 'last_week', 'last_month'],
    'Whole days, weeks or months before the day of the run, in the zone of the workspace.',
  ),
  formats: Type.Array(ReportFormat),
  schedule: Nullable(
    Named(
      'ReportSchedule',
      Type.Object(
        {
          every: OpenEnum('ReportInterval', ['day', 'week', 'month'], 'How often a report runs.'),
          weekday: Nullable(Type.Integer({ minimum: 1, maximum: 7, description: '1 = Monday.' })),
          dayOfMonth: Nullable(
            Type.Integer({
              minimum: 1,
              maximum: 31,
              description: 'In a shorter month the report runs on its last day.',
            }),
          ),
          hour: Type.Integer({ minimum: 0, maximum: 23 }),
        },
        { description: 'In the zone of the workspace. Null: it runs only on request.' },
      ),
    ),
  ),
};

const Run = Named(
  'ReportRun',
  Type.Object({
    runId: Uuid,
    name: Type.String({ description: 'Name of the report when the run was requested.' }),
    status: OpenEnum('ReportRunStatus', ['running', 'completed', 'failed'], 'Where a run stands.'),
    by: OpenEnum('ReportRunTrigger', ['schedule', 'request'], 'What started a run.'),
    from: LocalDate,
    to: LocalDate,
    asOf: Nullable(
      Type.String({
        ...Instant,
        description: 'The freshest snapshot in the run; later corrections do not change the run.',
      }),
    ),
    completeness: said(
      Nullable(Completeness),
      'Whether its figures are final. Null: the run is not completed, or was made before this was recorded.',
    ),
    format: said(ReportFormat, 'Format of the export that is returned by default.'),
    bytes: Nullable(Bytes),
    sha256: Nullable(Sha256),
    exports: Type.Array(
      Named(
        'ReportFile',
        Type.Object({ format: ReportFormat, contentType: Type.String(), bytes: Bytes, sha256: Sha256 }),
      ),
      {
        description: `Empty until the run is completed, and again when its exports are deleted: ${life}.`,
      },
    ),
    exportsUntil: Nullable(
      Type.String({ ...Instant, description: 'When its exports are deleted automatically. Null: it has none.' }),
    ),
    startedAt: Instant,
    completedAt: Nullable(Instant),
    failure: Nullable(Failure),
  }),
);

/** A row of the list. */
export const ReportSummary = Named('ReportSummary', Type.Object({ ...definition, ...stamps }));
export const Report = Named(
  'Report',
  Type.Object({
    ...definition,
    runs: Type.Array(Run, {
      description: 'The newest 100, newest first. GET /reports/{id}/exports/{runId} also finds older ones.',
    }),
    ...stamps,
  }),
);

export const ReportExport = Named(
  'ReportExport',
  Type.Object({
    object: Type.Literal('report_export'),
    reportId: Uuid,
    runId: Uuid,
    format: ReportFormat,
    url: Type.String({
      description: 'Presigned: its holder may read the file for 15 minutes. Repeat the call for a new one.',
    }),
    expiresAt: Instant,
    exportsUntil: Type.String({ ...Instant, description: `The file is deleted ${life}.` }),
    contentType: Type.String(),
    bytes: Bytes,
    sha256: Sha256,
  }),
);
