import { type Static, Type } from 'typebox';
import type {
  ReportExport as ExportSchema,
  Report as ReportSchema,
  ReportSummary as SummarySchema,
} from '#schemas/http/report.ts';
import { reads, tool } from '../tool.ts';
import { Args, Id, joined, Maybe, Mode, many, moreOf, Next, NextCursor, Nullable, pageOf, paging } from '../words.ts';

type Summary = Static<typeof SummarySchema>;
type Report = Static<typeof ReportSchema>;
type Export = Static<typeof ExportSchema>;

const Run = Type.Object({
  runId: Type.String(),
  status: Type.String({ description: 'running, completed or failed.' }),
  from: Type.String(),
  to: Type.String(),
  asOf: Nullable(Type.String(), 'How fresh its figures are.'),
  completedAt: Nullable(Type.String()),
  failure: Nullable(Type.String()),
});

/** Newest first: what a question about a report is mostly about. */
const maxRunsTold = 5;

export const listReports = tool({
  name: 'list_reports',
  title: 'Saved reports and their files',
  description:
    'Lists the saved reports of the workspace. With reportId: its newest runs, and an address of the file of the newest completed one, which works for 15 minutes. Give the address to the person; it needs no sign-in.',
  scopes: ['reports.read'],
  hints: reads,
  input: Args({ reportId: Maybe(Id('Only this report, with its runs.')), ...paging }),
  output: Type.Object({
    mode: Mode,
    reports: Type.Array(
      Type.Object({
        reportId: Type.String(),
        name: Type.String(),
        kind: Type.String(),
        window: Type.String(),
        formats: Type.Array(Type.String()),
        isScheduled: Type.Boolean(),
      }),
    ),
    runs: Type.Array(Run, { description: 'Of one report: the newest first.' }),
    download: Nullable(
      Type.Object({ runId: Type.String(), url: Type.String(), format: Type.String(), expiresAt: Type.String() }),
      'The file of the newest completed run; null: there is none.',
    ),
    nextCursor: NextCursor,
    nextStep: Next,
  }),
  run: async (call, { reportId, ...page }) => {
    const one = reportId === undefined ? null : await call.invoke<Report>('getReport', { params: { id: reportId } });
    const list = one === null ? await call.invoke<Summary[]>('listReports', { query: pageOf(page) }) : null;
    const found: readonly Summary[] = one === null ? (list?.data ?? []) : [one.data];
    const reports = found.map(({ id, name, kind, window, formats, schedule }) => ({
      reportId: id,
      ...{ name, kind, window, formats: [...formats] },
      isScheduled: schedule !== null,
    }));
    const all = one?.data.runs ?? [];
    const runs = call.cuts
      .rows('runs', all, maxRunsTold)
      .map(({ runId, status, from, to, asOf, completedAt, failure }) => ({
        ...{ runId, status, from, to, asOf, completedAt },
        failure: failure === null ? null : failure.message,
      }));
    const newest = all.find(({ status, exports }) => status === 'completed' && exports.length > 0);
    const file =
      newest === undefined || reportId === undefined
        ? null
        : (await call.invoke<Export>('getReportExport', { params: { id: reportId, runId: newest.runId } })).data;
    const download =
      file === null ? null : { runId: file.runId, url: file.url, format: file.format, expiresAt: file.expiresAt };
    const nextCursor = list?.page?.nextCursor ?? null;
    const nextStep =
      reports.length === 0
        ? 'No report is saved: an operator of the service defines them. analytics_summary answers questions at once.'
        : reportId === undefined
          ? 'list_reports with a reportId has its runs and its file.'
          : 'Give the address to the person, or call again later if the run is not completed.';
    const text = joined(
      `${many(reports.length, 'report')} (${call.mode}).`,
      ...reports.map(
        ({ reportId: id, name, kind, window, isScheduled }) =>
          `- ${call.cuts.quoted('name', name)} (reportId ${id}): ${kind}, ${window}${isScheduled ? ', runs by itself' : ''}`,
      ),
      ...runs.map(
        ({ runId, status, from, to, failure }) =>
          `  - run ${runId}: ${status}, ${from} to ${to}${failure === null ? '' : `: ${failure}`}`,
      ),
      all.length > runs.length ? `  … and ${all.length - runs.length} older runs` : null,
      download === null
        ? null
        : `The ${download.format} of run ${download.runId}, until ${download.expiresAt}: ${download.url}`,
      moreOf(nextCursor),
      nextStep,
    );
    return { text, data: { mode: call.mode, reports, runs, download, nextCursor, nextStep } };
  },
});
