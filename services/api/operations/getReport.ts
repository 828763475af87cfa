import { IdParams } from '#schemas/http/common.ts';
import { Report } from '#schemas/http/report.ts';
import { operation } from '../operation.ts';
import { exampleReport } from '../reports/examples.ts';
import { keptUntil, readReport, showReport } from '../reports/show.ts';

export const getReport = operation({
  id: 'getReport',
  method: 'GET',
  path: '/reports/{id}',
  tag: 'reports',
  summary: 'Get a saved report and its runs',
  description:
    'With its newest 100 runs. A run is `running` until the figures of its days are final and its files are made; then the event `report.run.completed` or `report.run.failed` tells how it ended.',
  scope: 'reports.read',
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
