import { Type } from 'typebox';
import { Instant, Nullable, Uuid } from '#schemas/common.ts';
import { said } from '#schemas/published.ts';
import { Completeness, ReportFailure, ReportFormat } from '#schemas/report.ts';
import { example, exampleHash, instants, publicEvent } from './common.ts';

/** Events of fetched figures and of finished reports. */

const Count = (description: string) => Type.Integer({ minimum: 0, description });
const run = {
  reportId: said(Uuid, 'The report.'),
  runId: said(Uuid, 'The run, one of the `runs` of GET /reports/{id}.'),
  clientId: said(
    Nullable(Uuid),
    'The client that the report was about when the run was requested. Null: it was about no single client.',
  ),
};
const exampleRun = { reportId: example.reportId, runId: example.runId, clientId: example.clientId };

export const refreshPublic = {
  'analytics.refreshed': publicEvent(
    'A requested refresh of figures is complete: every account of it was tried.',
    Type.Object(
      {
        refreshId: said(Uuid, 'The refresh, as POST /analytics/refresh answered it.'),
        clientId: said(Nullable(Uuid), 'Always null: a refresh is of the workspace.'),
        asOf: said(Instant, 'When the refresh was complete. Figures that were fetched for it are from before.'),
        accounts: Count('Accounts of the refresh, those that failed included.'),
        failedAccounts: Count(
          'Accounts of which figures could not be fetched: their network did not answer or refused, or they may not be asked now. 0: none.',
        ),
      },
      { description: 'How a requested refresh of figures ended.' },
    ),
    { refreshId: example.refreshId, clientId: null, asOf: instants.last, accounts: 8, failedAccounts: 0 },
  ),
};

export const reportPublic = {
  'report.run.completed': publicEvent(
    'A report was made and can be exported.',
    Type.Object(
      {
        ...run,
        format: said(ReportFormat, 'Format of the export that is returned by default.'),
        asOf: said(Nullable(Instant), 'When the freshest snapshot in the run was made. Null: there was none.'),
        bytes: Count('Length of the export in `format`, in bytes.'),
        sha256: Type.String({
          pattern: '^[0-9a-f]{64}$',
          description: 'SHA-256 of the export in `format`, in lower-case hex.',
          examples: [exampleHash],
        }),
        completeness: said(Completeness, 'Whether its figures are final, and the days whose figures are not.'),
      },
      { description: 'A completed run of a report, and its first file.' },
    ),
    {
      ...{ ...exampleRun, format: 'pdf', asOf: instants.last, bytes: 84_201, sha256: exampleHash },
      completeness: { complete: true, provisionalDays: [] },
    },
  ),
  'report.run.failed': publicEvent(
    'A report could not be made.',
    Type.Object(
      { ...run, failure: said(ReportFailure, 'Why the run has no export.') },
      { description: 'A run of a report that failed.' },
    ),
    {
      ...exampleRun,
      failure: {
        code: 'report_failed',
        message: 'The report could not be made, although it was tried several times. Ask for another run.',
      },
    },
  ),
};
