import { type Static, Type } from 'typebox';
import { type EventOf, Instant, Nullable, Platform, Uuid } from './common.ts';
import { LocalDate } from './insights.ts';
import { Named, OpenEnum } from './published.ts';

/** A saved report: its subject, its schedule, and its runs. A completed run never changes. */

export const reportFormats = ['csv', 'json', 'pdf'] as const;
export const formatWords =
  'The form of an exported file. csv: the days as a table, for spreadsheets; json: all figures, for programs; pdf: pages to read, with charts.';
export const ReportFormat = OpenEnum('ReportFormat', reportFormats, formatWords);
export type ReportFormat = (typeof reportFormats)[number];

/** Days for which the exports of a run are kept after its completion. Its days and checksums stay. */
export const exportDays = 400;

export const ReportDefinition = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 200 }),
  kind: Type.Enum(['workspace', 'client', 'account']),
  filters: Type.Object({
    clientId: Nullable(Uuid),
    socialAccountId: Nullable(Uuid),
    platform: Nullable(Platform),
  }),
  /** Days before the day of the run, which is excluded; or the calendar month or week before it. */
  window: Type.Enum(['last_7_days', 'last_30_days', 'last_90_days', 'last_week', 'last_month']),
  formats: Type.Array(ReportFormat, { minItems: 1, maxItems: 3 }),
  /** In the workspace's zone. Null: it runs only on request. */
  schedule: Nullable(
    Type.Object({
      every: Type.Enum(['day', 'week', 'month']),
      /** 1 = Monday; for weekly schedules. */
      weekday: Nullable(Type.Integer({ minimum: 1, maximum: 7 })),
      /** For monthly schedules; in a shorter month it runs on the last day. */
      dayOfMonth: Nullable(Type.Integer({ minimum: 1, maximum: 31 })),
      hour: Type.Integer({ minimum: 0, maximum: 23 }),
    }),
  ),
  /** Whether a csv begins with U+FEFF. Absent: it does. */
  bom: Type.Optional(Type.Boolean()),
});
export type ReportDefinition = Static<typeof ReportDefinition>;

const Export = Type.Object({
  format: ReportFormat,
  /** Key of the blob: `<workspace>/reports/<run>/…`. */
  key: Type.String({ minLength: 1, maxLength: 500 }),
  contentType: Type.String({ maxLength: 200 }),
  bytes: Type.Integer({ minimum: 0 }),
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
});

/** Whether the figures of a run's days were final when they were read. */
export const Completeness = Named(
  'ReportCompleteness',
  Type.Object(
    {
      complete: Type.Boolean({
        description: 'Whether the figures of all its days were final: no later observation or count changes them.',
      }),
      provisionalDays: Type.Array(LocalDate, {
        maxItems: 100,
        description:
          'Days whose figures a later observation or count may still have changed, oldest first. Empty where it is complete.',
      }),
    },
    {
      description:
        'Whether the figures of a run were final. A run waits up to 6 hours after it was asked for until the figures of its days are final; then it is made all the same and names the days that are not.',
    },
  ),
);
export type Completeness = Static<typeof Completeness>;

export const ReportFailure = Named(
  'ReportFailure',
  Type.Object(
    {
      code: Type.String({
        maxLength: 100,
        description: 'Stable: branch on it. GET /errors/{code} explains it.',
        examples: ['report_failed'],
      }),
      message: Type.String({ maxLength: 2000, description: 'What happened, in words for a person.' }),
    },
    { description: 'Why a run has no export. The run is not made again; a later one may succeed.' },
  ),
);

const run = { runId: Uuid } as const;

export const reportEvents = {
  ReportDefined: Type.Object({ definition: ReportDefinition }),
  ReportRunRequested: Type.Object({
    ...run,
    from: LocalDate,
    to: LocalDate,
    by: Type.Enum(['schedule', 'request']),
    formats: Type.Array(ReportFormat, { minItems: 1, maxItems: 3 }),
  }),
  ReportRunCompleted: Type.Object({
    ...run,
    /** The freshest snapshot in the run; null: there was none. Later corrections do not change the run. */
    asOf: Nullable(Instant),
    /** The files are deleted `exportDays` after this, and when the client of the run is erased. */
    exports: Type.Array(Export, { minItems: 1, maxItems: 3 }),
    completeness: Completeness,
  }),
  ReportRunFailed: Type.Object({
    ...run,
    code: Type.String({ minLength: 1, maxLength: 100 }),
    message: Type.String({ maxLength: 500 }),
  }),
  ReportRemoved: Type.Object({}),
} as const;
export type ReportEvent = EventOf<typeof reportEvents>;
