import type { NewestFirst } from '#projections/engine/rows.ts';
import { listReports as rowsOf } from '#projections/models/reports.ts';
import { ReportQuery, ReportSummary } from '#schemas/http/report.ts';
import { listPage, newestFirst } from '../cursor.ts';
import { operation } from '../operation.ts';
import { exampleSummary } from '../reports/examples.ts';
import { showSummary } from '../reports/show.ts';

export const listReports = operation({
  id: 'listReports',
  method: 'GET',
  path: '/reports',
  tag: 'reports',
  summary: 'List saved reports, newest first',
  description: 'The list leaves out their runs; GET /reports/{id} has them.',
  scope: 'reports.read',
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
