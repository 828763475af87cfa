import { setTimeout as delay } from 'node:timers/promises';
import { type Static, Type } from 'typebox';
import { Rejection } from '#domain/decider.ts';
import type {
  ReportExport as ExportSchema,
  Report as ReportSchema,
  RequestedRun as RunSchema,
  ReportSummary as SummarySchema,
} from '#schemas/http/report.ts';
import { reportFormats } from '#schemas/report.ts';
import { invalid } from '#services/api/call/refusal.ts';
import type { ToolCall } from '../call.ts';
import { changes, reads, tool } from '../tool.ts';
import {
  Args,
  Id,
  joined,
  Maybe,
  Mode,
  many,
  moreOf,
  Next,
  NextCursor,
  Nullable,
  PlainKey,
  pageOf,
  plainPaging,
  Replayed,
  replayedWords,
} from '../words.ts';

type Summary = Static<typeof SummarySchema>;
type Report = Static<typeof ReportSchema>;
type Export = Static<typeof ExportSchema>;
type Run = Static<typeof RunSchema>;

const ShownRun = Type.Object({
  runId: Type.String(),
  status: Type.String({ description: 'running, completed or failed.' }),
  from: Type.String(),
  to: Type.String(),
  asOf: Nullable(Type.String(), 'How fresh its figures are.'),
  completedAt: Nullable(Type.String()),
  failure: Nullable(Type.String()),
});

/** Newest first: what a question about a report is mostly about. */
const maxRunsShown = 5;

export const listReports = tool({
  name: 'list_reports',
  title: 'Saved reports and their files',
  description:
    'Lists the saved reports of the workspace. With reportId: its newest runs, and an address of the file of the newest completed one, which works for 15 minutes. Give the address to the person; it needs no sign-in.',
  scopes: ['reports.read'],
  hints: reads,
  input: Args({ reportId: Maybe(Id('Only this report, with its runs.')), ...plainPaging }),
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
    runs: Type.Array(ShownRun, { description: 'Of one report: the newest first.' }),
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
      .rows('runs', all, maxRunsShown)
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
      ...runs.map(({ runId, status, from, to, failure }) =>
        [`  - run ${runId}: ${status}, ${from} to ${to}`, failure === null ? '' : ` (${failure})`].join(''),
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

/** Words of a name that tell reports apart: “the monthly report” may be “Monthly figures”. */
const wordsOf = (name: string): readonly string[] =>
  name.split(/[^\p{L}\p{N}]+/u).filter((word) => word.length > 2 && !['the', 'report', 'reports'].includes(word));

const calledOf =
  (call: ToolCall) =>
  ({ id, name }: Summary): string =>
    `${call.cuts.quoted('name', name)} (reportId ${id})`;

/** The one report that a person means: that of the name, else the only one whose name has all the words. */
const reportNamed = async (call: ToolCall, name: string): Promise<string> => {
  const wanted = name.trim().toLowerCase();
  const words = wordsOf(wanted);
  const fits = (text: string) =>
    text.includes(wanted) || (words.length > 0 && words.every((one) => text.includes(one)));
  const found = await call.search<Summary>('listReports', {}, (one) => fits(one.name.toLowerCase()));
  const exact = found.filter((one) => one.name.trim().toLowerCase() === wanted);
  const [only, ...others] = exact.length > 0 ? exact : found;
  if (only === undefined) throw invalid('/name', 'not_allowed', 'fits no report: list_reports lists them');
  if (others.length === 0) return only.id;
  const several = call.cuts
    .rows('reports', [only, ...others], 10)
    .map(calledOf(call))
    .join(', ');
  throw invalid('/name', 'not_allowed', `fits several reports, send the reportId of one: ${several}`);
};

/** Milliseconds between two looks for the file: a run whose figures are final is made within seconds. */
const looks = [500, 1_000, 2_000];

/** The file of a run that was just started; its status where it has none yet, or gets none. */
const fileOf = async (call: ToolCall, id: string, runId: string): Promise<Export | 'running' | 'failed'> => {
  for (const waitMs of looks) {
    await delay(waitMs);
    try {
      return (await call.invoke<Export>('getReportExport', { params: { id, runId } })).data;
    } catch (error) {
      // The run is started: whatever refuses the file must not hide that.
      if (!(error instanceof Rejection)) throw error;
      if (error.extra.runStatus === 'failed') return 'failed';
      if (error.code !== 'run_not_completed') return 'running';
    }
  }
  return 'running';
};

const after = {
  completed: 'Give the address to the person; it works for 15 minutes, and list_reports gives a new one.',
  failed: 'list_reports with the reportId says why.',
  running:
    'Do not start it again: list_reports with the reportId has the file once the run is completed, after hours where figures are not final.',
} as const;

export const runReport = tool({
  name: 'run_report',
  title: 'Run a report now',
  description:
    'Makes a saved report now, by reportId or by name, and answers the address of its file. list_reports has earlier files.',
  scopes: ['reports.manage', 'reports.read'],
  hints: { ...changes, idempotentHint: false },
  input: Args({
    reportId: Maybe(Id()),
    name: Maybe(Type.String()),
    format: Maybe(Type.Enum([...reportFormats])),
    idempotencyKey: PlainKey,
  }),
  output: Type.Object({
    mode: Mode,
    reportId: Type.String(),
    runId: Type.String(),
    status: Type.String(),
    url: Nullable(Type.String()),
    replayed: Replayed,
    nextStep: Next,
  }),
  run: async (call, { reportId, name, format }) => {
    if ((reportId === undefined) === (name === undefined))
      throw invalid('/reportId', 'required', 'must be sent, or name instead of it');
    const id = reportId ?? (await reportNamed(call, name ?? ''));
    const body = format === undefined ? {} : { formats: [format] };
    const asked = { params: { id }, body, key: call.key('create') };
    const { data: run, replayed } = await call.invoke<Run>('runReport', asked);
    const { runId, from, to } = run;
    const file = await fileOf(call, id, runId);
    const status = typeof file === 'string' ? file : 'completed';
    const url = typeof file === 'string' ? null : file.url;
    const nextStep = after[status];
    const text = joined(
      `Run ${runId} of ${call.cuts.quoted('name', run.name)} (reportId ${id}, ${call.mode}), ${from} to ${to}: ${status}.`,
      typeof file === 'string' ? null : `The ${file.format}, until ${file.expiresAt}: ${file.url}`,
      replayedWords(replayed),
      nextStep,
    );
    return { text, data: { mode: call.mode, reportId: id, runId, status, url, replayed, nextStep } };
  },
});
