/** One story in all examples: a client's monthly report, as it was made on the first of March. */

const ids = {
  report: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e000b',
  run: '25506999-43cb-5b0c-af35-7476a419ca0f',
  client: '315d0d36-9a7d-573e-8bc2-d5133b51f29b',
};
const asked = '2026-03-01T05:00:00.000Z';
const file = {
  contentType: 'application/pdf',
  bytes: 84_201,
  sha256: 'f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2',
};

export const exampleSummary = {
  id: ids.report,
  object: 'report',
  name: 'Monthly figures',
  kind: 'client',
  filters: { clientId: ids.client, socialAccountId: null, platform: null },
  window: 'last_month',
  formats: ['pdf'],
  schedule: { every: 'month', weekday: null, dayOfMonth: 1, hour: 6 },
  bom: true,
  createdAt: '2026-01-31T08:00:00.000Z',
  updatedAt: '2026-03-01T05:00:02.000Z',
  revision: 2,
};

export const exampleReport = {
  ...exampleSummary,
  runs: [
    {
      runId: ids.run,
      name: 'Monthly figures',
      status: 'completed',
      by: 'schedule',
      from: '2026-02-01',
      to: '2026-02-28',
      asOf: '2026-03-01T02:14:09.000Z',
      completeness: { complete: true, provisionalDays: [] },
      format: 'pdf',
      bytes: file.bytes,
      sha256: file.sha256,
      exports: [{ format: 'pdf', ...file }],
      exportsUntil: '2027-04-05T05:00:02.000Z',
      startedAt: asked,
      completedAt: '2026-03-01T05:00:02.000Z',
      failure: null,
    },
  ],
};

export const exampleExport = {
  object: 'report_export',
  reportId: ids.report,
  runId: ids.run,
  format: 'pdf',
  url: 'https://files.example/report.pdf?signature=<signature>',
  expiresAt: '2026-03-01T08:15:00.000Z',
  exportsUntil: '2027-04-05T05:00:02.000Z',
  ...file,
};

export const exampleRun = {
  object: 'report_run',
  reportId: ids.report,
  runId: ids.run,
  name: 'Monthly figures',
  status: 'running',
  by: 'request',
  from: '2026-02-01',
  to: '2026-02-28',
  asOf: null,
  completeness: null,
  format: 'pdf',
  bytes: null,
  sha256: null,
  exports: [],
  exportsUntil: null,
  startedAt: asked,
  completedAt: null,
  failure: null,
};
