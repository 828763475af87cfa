import { Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { LocalDate } from '#schemas/insights.ts';
import { ClosedEnum, Named, OpenEnum, said } from '#schemas/published.ts';
import { Completeness, exportDays, formatWords, ReportFailure, ReportFormat, reportFormats } from '#schemas/report.ts';
import { Maybe, paging, stamps, UuidInput } from './common.ts';

/** Saved reports, their runs and exports, as callers see them. */

export const ReportQuery = Type.Object(paging);
export const ExportParams = Type.Object({
  id: said(UuidInput, 'Id of the report.'),
  runId: said(UuidInput, 'Id of a run of the report: from its `runs`, or from the event `report.run.completed`.'),
});

const FormatInput = ClosedEnum('ReportFormatInput', reportFormats, formatWords);
const Sha256 = (description: string) =>
  Type.String({
    pattern: '^[0-9a-f]{64}$',
    description,
    examples: ['f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2'],
  });
const Bytes = (description: string) => Type.Integer({ minimum: 0, description });
const file = {
  contentType: Type.String({
    description: 'Media type of the file.',
    examples: ['application/pdf', 'text/csv; charset=utf-8', 'application/json'],
  }),
  bytes: Bytes('Length of the file in bytes.'),
  sha256: Sha256('SHA-256 of the file, in lower-case hex.'),
};

export const ExportQuery = Type.Object({
  format: Maybe(said(FormatInput, 'Which export of the run. Default: the first format of the run.')),
});

const life = `${exportDays} days after the run was completed, or when the client that it is about is erased`;

const definition = {
  id: said(Uuid, 'Id of the report.'),
  object: Type.Literal('report', { description: 'The kind of resource.' }),
  name: Type.String({
    description: 'Its name, 1 to 200 characters; it heads the pdf and begins the name of each file.',
  }),
  kind: said(
    OpenEnum(
      'ReportKind',
      ['workspace', 'client', 'account'],
      'What a report is about. workspace: its accounts; client: the accounts of one client; account: one account, with its audience.',
    ),
    'What it is about.',
  ),
  filters: said(
    Named(
      'ReportFilters',
      Type.Object(
        {
          clientId: said(
            Nullable(Uuid),
            'Only accounts of this client. Null: of every client; never null for the kinds client and account.',
          ),
          socialAccountId: said(
            Nullable(Uuid),
            'Only this account. Null: every account; never null for the kind account.',
          ),
          platform: said(
            Nullable(Platform),
            'Only accounts on this network. Null: on every network; always null for the kind account.',
          ),
        },
        { description: 'Which accounts a report counts: those that fit all of its filters.' },
      ),
    ),
    'Which accounts it counts.',
  ),
  window: said(
    OpenEnum(
      'ReportWindow',
      ['last_7_days', 'last_30_days', 'last_90_days', 'last_week', 'last_month'],
      'The days of a run, in the zone of the workspace. last_7_days, last_30_days, last_90_days: so many days, to the day before the run; last_week: from Monday to Sunday, the week before that of the run; last_month: the calendar month before that of the run.',
    ),
    'The days that each run counts, by the day of the run.',
  ),
  formats: Type.Array(ReportFormat, {
    description:
      'The files that each run makes, one for each format. The first is the one that is returned by default.',
  }),
  schedule: said(
    Nullable(
      Named(
        'ReportSchedule',
        Type.Object(
          {
            every: said(
              OpenEnum(
                'ReportInterval',
                ['day', 'week', 'month'],
                'How often a report runs. day: each day; week: on one day of each week; month: on one day of each month.',
              ),
              'How often it runs.',
            ),
            weekday: Nullable(
              Type.Integer({
                minimum: 1,
                maximum: 7,
                description: 'Day of the week: 1 is Monday, 7 Sunday. Null: it does not run by the week.',
              }),
            ),
            dayOfMonth: Nullable(
              Type.Integer({
                minimum: 1,
                maximum: 31,
                description:
                  'Day of the month; in a shorter month the report runs on its last day. Null: it does not run by the month.',
              }),
            ),
            hour: Type.Integer({
              minimum: 0,
              maximum: 23,
              description:
                'Hour of the day: 6 is 06:00. Where the clock skips it, the report runs later by the time that is skipped.',
            }),
          },
          { description: 'When a report runs by itself, in the zone of the workspace.' },
        ),
      ),
    ),
    'When it runs by itself. Null: only on request, as after its client was archived.',
  ),
  bom: Type.Boolean({
    description:
      'Whether a csv of its runs begins with U+FEFF, by which spreadsheets know that the file is UTF-8. A program that reads the file leaves the mark out.',
  }),
};

const run = {
  runId: said(Uuid, 'Id of the run.'),
  name: Type.String({ description: 'Name of the report when the run was requested.' }),
  status: said(
    OpenEnum(
      'ReportRunStatus',
      ['running', 'completed', 'failed'],
      'Where a run stands. running: it waits until the figures of its days are final, or is being made; completed: its exports can be read; failed: it has none and gets none.',
    ),
    'Where it stands.',
  ),
  by: said(
    OpenEnum(
      'ReportRunTrigger',
      ['schedule', 'request'],
      'What started a run. schedule: the schedule of the report; request: a person, or a program for one.',
    ),
    'What started it.',
  ),
  from: said(LocalDate, 'First day of its figures. YYYY-MM-DD, in the zone of the workspace.'),
  to: said(LocalDate, 'Last day of its figures, included. YYYY-MM-DD, in the zone of the workspace.'),
  asOf: said(
    Nullable(Instant),
    'When the freshest snapshot in the run was made; later corrections do not change the run. Null: there was none, or the run is not completed.',
  ),
  completeness: said(Nullable(Completeness), 'Whether its figures are final. Null: the run is not completed.'),
  format: said(ReportFormat, 'Format of the export that is returned by default.'),
  bytes: Nullable(Bytes('Length of the export in `format`, in bytes. Null: it has none.')),
  sha256: Nullable(Sha256('SHA-256 of the export in `format`, in lower-case hex. Null: it has none.')),
  exports: Type.Array(
    Named(
      'ReportFile',
      Type.Object(
        { format: said(ReportFormat, 'Its format: at most one file of a run has it.'), ...file },
        { description: 'A file that a run made. GET /reports/{id}/exports/{runId} gives its address.' },
      ),
    ),
    {
      description: `Its files, one for each format. Empty until the run is completed, and again when its exports are deleted: ${life}.`,
    },
  ),
  exportsUntil: said(Nullable(Instant), 'When its exports are deleted automatically. Null: it has none.'),
  startedAt: said(Instant, 'When the run was requested.'),
  completedAt: said(Nullable(Instant), 'When it was completed. Null: it is running, or has failed.'),
  failure: said(Nullable(ReportFailure), 'Why it has failed. Null: it has not.'),
};
const Run = Named(
  'ReportRun',
  Type.Object(run, {
    description: 'One run of a report: its days, how it ended, and its files. A completed run never changes.',
  }),
);

/** A row of the list. */
export const ReportSummary = Named(
  'ReportSummary',
  Type.Object({ ...definition, ...stamps }, { description: 'A saved report as a row of a list: without its runs.' }),
);
export const Report = Named(
  'Report',
  Type.Object(
    {
      ...definition,
      runs: Type.Array(Run, {
        description:
          'The newest 100 runs, newest first. GET /reports/{id}/exports/{runId} also finds older ones. Empty: it has not run yet.',
      }),
      ...stamps,
    },
    { description: 'A saved report, when it runs, and its runs.' },
  ),
);

export const ReportRunCreate = Named(
  'ReportRunCreate',
  Type.Object(
    {
      formats: Maybe(
        Type.Array(FormatInput, {
          minItems: 1,
          maxItems: 3,
          description: 'The files that this run makes, each once. Default: the formats of the report.',
          examples: [['pdf']],
        }),
      ),
    },
    { description: 'What a run of a report makes. It may be left out.' },
  ),
);

/** A run on its own, outside of its report. */
export const RequestedRun = Named(
  'RequestedReportRun',
  Type.Object(
    {
      object: Type.Literal('report_run', { description: 'The kind of resource.' }),
      reportId: said(Uuid, 'The report.'),
      ...run,
    },
    { description: 'A run of a report that was just requested, as the report shows it among its `runs`.' },
  ),
);

export const ReportExport = Named(
  'ReportExport',
  Type.Object(
    {
      object: Type.Literal('report_export', { description: 'The kind of resource.' }),
      reportId: said(Uuid, 'The report.'),
      runId: said(Uuid, 'The run that made the file.'),
      format: said(ReportFormat, 'The format of the file.'),
      url: Type.String({
        description: 'Presigned: its holder may read the file for 15 minutes. Repeat the call for a new one.',
        examples: ['https://files.example/report.pdf?signature=<signature>'],
      }),
      expiresAt: said(Instant, 'When `url` stops working, 15 minutes after the call. The file stays.'),
      exportsUntil: said(Instant, `The file is deleted ${life}.`),
      ...file,
    },
    { description: 'Where one file of a completed run can be read, and how to check what was read.' },
  ),
);
