import { Type } from 'typebox';
import { Instant, Nullable, Uuid } from '#schemas/common.ts';
import { said } from '#schemas/published.ts';
import { Completeness } from '#schemas/report.ts';
import { example, exampleHash, instants, Problem, perhapsClient, publicEvent } from './common.ts';

/** Events of fetched figures and of finished reports. */

const Count = Type.Integer({ minimum: 0 });
const run = { reportId: Uuid, runId: Uuid, ...perhapsClient };
const exampleRun = { reportId: example.reportId, runId: example.runId, clientId: example.clientId };

export const refreshPublic = {
  'analytics.refreshed': publicEvent(
    'The figures of a requested refresh were fetched.',
    Type.Object({ refreshId: Uuid, ...perhapsClient, asOf: Instant, accounts: Count, failedAccounts: Count }),
    { refreshId: example.refreshId, clientId: null, asOf: instants.last, accounts: 8, failedAccounts: 0 },
  ),
};

export const reportPublic = {
  'report.run.completed': publicEvent(
    'A report was made and can be exported.',
    Type.Object({
      ...run,
      format: Type.String({ maxLength: 20 }),
      asOf: Nullable(
        Type.String({ ...Instant, description: 'The freshest snapshot in the run; null: there was none.' }),
      ),
      bytes: Count,
      sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
      completeness: Type.Optional(
        said(Completeness, 'Whether its figures are final, and the days whose figures are not. Absent: not recorded.'),
      ),
    }),
    {
      ...{ ...exampleRun, format: 'pdf', asOf: instants.last, bytes: 84_201, sha256: exampleHash },
      completeness: { complete: true, provisionalDays: [] },
    },
  ),
  'report.run.failed': publicEvent('A report could not be made.', Type.Object({ ...run, failure: Problem }), {
    ...exampleRun,
    failure: { code: 'report_too_large', message: 'The window holds more posts than one report takes.' },
  }),
};
