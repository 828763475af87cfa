import { createHash } from 'node:crypto';
import {
  exportsEndAt,
  type ReportCommand,
  type ReportExport,
  type ReportRun,
  type ReportState,
  report,
  reportFailures,
} from '#domain/report.ts';
import { firstUncounted } from '#projections/analytics/dirty.ts';
import { liveVersion } from '#projections/analytics/live.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { type Lease, LeaseLost } from '#runtime/work/leases.ts';
import type { ReportFormat } from '#schemas/report.ts';
import { restOf } from './completeness.ts';
import type { Contents } from './contents.ts';
import { type ReportDeps, reportContext } from './deps.ts';
import { exportsOf } from './exports/index.ts';
import type { Begun, Job, ReportJobs } from './jobs.ts';
import { endOf, readContents } from './read.ts';

/**
 * Keys of a run's blobs. Each ends in a hash of its content, so a stale worker that still writes never changes a file
 * that a stream names already.
 */
export const blobKey = (workspaceId: string, runId: string, format: ReportFormat, sha256: string): string =>
  `${workspaceId}/reports/${runId}/report-${sha256.slice(0, 16)}.${format}`;

/** Times that a run is begun before it fails. */
export const maxTries = 5;

interface Work {
  readonly job: Job;
  readonly begun: Begun;
  readonly lease: Lease;
  readonly loaded: Loaded<ReportState>;
  /** Aborts when the lease is lost or the process drains. */
  readonly signal: AbortSignal;
}

type Tools = ReportDeps & { readonly jobs: ReportJobs };

/** `waiting`: figures of its days may still change, and the worker tries again later. */
export type Outcome = 'completed' | 'failed' | 'nothing' | 'waiting';

/**
 * Makes a run once the figures of its days are final, or once its longest wait is over. The worker reads the figures
 * once, notes the key of each export before it writes the blob, and appends one event when all blobs are written. If
 * the process dies before the event, a worker makes the run again and deletes blobs that no event names. After the
 * event nothing of the run changes.
 * @throws the error that stopped the work; the job then stays
 */
export const make = async (work: Work, tools: Tools): Promise<Outcome> => {
  const { job, loaded, begun } = work;
  const { state } = loaded;
  const run = openRun(state, job.id);
  // Blobs of earlier tries and of this one: `tidy` deletes those that the stream does not name.
  const written = [...begun.written];
  let after: ReportState = state;
  if (run !== null && state.status === 'live') {
    const erased = (await endOf(tools.store, job.workspaceId, run.about.filters.clientId)) === 'erased';
    if (erased) after = await record(work, tools, failure(run, 'client_erased'));
    else if (begun.attempts > maxTries) after = await record(work, tools, failure(run, 'report_failed'));
    else {
      const contents = await read(work, tools, run);
      if (contents === null) return 'waiting';
      const exports = await write(work, tools, run, contents, written);
      faultPoint('reports:after-put');
      const { asOf, completeness } = contents;
      after = await record(work, tools, { type: 'Complete', runId: run.runId, asOf, exports, completeness });
    }
    faultPoint('reports:after-outcome');
  }
  await tidy(tools, job, written, after);
  await tools.jobs.done(job);
  const ended = run === null || after.status !== 'live' ? undefined : after.runs.get(run.runId)?.status;
  return ended === 'completed' || ended === 'failed' ? ended : 'nothing';
};

const openRun = (state: ReportState, id: string): ReportRun | null => {
  const run = state.status === 'live' ? state.runs.get(id) : undefined;
  return run?.status === 'open' ? run : null;
};

const failure = ({ runId }: ReportRun, code: keyof typeof reportFailures): ReportCommand => ({
  type: 'Fail',
  runId,
  code,
  message: reportFailures[code],
});

const record = async (
  { job, loaded, lease }: Work,
  { store, now = Date.now }: Tools,
  command: ReportCommand,
): Promise<ReportState> => {
  const executed = await execute(store, report, job.reportId, command, reportContext(loaded, job, now), {
    loaded,
    guard: () => {
      if (!lease.isHeld()) throw new LeaseLost(job.id);
    },
  });
  return executed.state;
};

/**
 * Null: figures of its days may still change, and the run was rescheduled. The query for uncounted days comes before
 * the query for figures: in the other order a count that ended in between would seem to be in the figures.
 */
const read = async (work: Work, tools: Tools, run: ReportRun): Promise<Contents | null> => {
  const { job } = work;
  const { pool, config, now = Date.now, pollMs = 1_000 } = tools;
  const waiting = {
    requestedAt: run.requestedAt,
    now: now() + job.aheadMs,
    maxMs: config.reportWaitMs,
    minRestMs: pollMs,
  };
  const restMs = restOf(waiting);
  const uncounted = await firstUncounted(pool, await liveVersion(pool), job.workspaceId, run);
  if (uncounted === null || restMs === 0) {
    const contents = await readContents(tools, job, run.about, run, { uncounted, now: job.now.getTime() });
    if (contents.completeness.complete || restMs === 0) return contents;
  }
  faultPoint('reports:before-rest');
  if (!work.lease.isHeld()) throw new LeaseLost(job.id);
  await tools.jobs.reschedule(job.id, restMs, true);
  return null;
};

const write = async (
  work: Work,
  tools: Tools,
  run: ReportRun,
  contents: Contents,
  written: string[],
): Promise<ReportExport[]> => {
  const { job, signal } = work;
  const exports: ReportExport[] = [];
  for (const format of run.formats) {
    signal.throwIfAborted();
    const { contentType, make: made } = exportsOf[format];
    const bytes = await made(contents, { bom: run.about.bom ?? true });
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const key = blobKey(job.workspaceId, run.runId, format, sha256);
    await note(work, tools, key);
    written.push(key);
    // mutant: report completed before its files are there
    await tools.blobs.put(key, bytes, { contentType, bytes: bytes.length, signal });
    exports.push({ format, key, contentType, bytes: bytes.length, sha256 });
  }
  return exports;
};

/** Call it before the blob is written: if the process dies, the job's row names the blob. */
const note = async ({ job, lease }: Work, { jobs }: Tools, key: string): Promise<void> => {
  if (!(await jobs.note(job.id, [key])) || !lease.isHeld()) throw new LeaseLost(job.id);
};

type Completed = Extract<ReportRun, { status: 'completed' }>;

/** The run of the job, or all runs where the job is about the whole report. */
const completedOf = (state: ReportState, { id, reportId }: Job): readonly Completed[] =>
  state.status === 'none'
    ? []
    : [...state.runs.values()].filter(
        (run): run is Completed => run.status === 'completed' && (id === reportId || run.runId === id),
      );

/**
 * Deletes blobs left by a crash, and exports of a removed report, of a run that is too old, or of an erased client. It
 * reads the client after the run was completed: the event of a later erasure makes a job that finds the completed run.
 * The caller deletes the job's row afterwards.
 */
const tidy = async (
  { blobs, store }: Tools,
  job: Job,
  written: readonly string[],
  state: ReportState,
): Promise<void> => {
  const runs = completedOf(state, job);
  const erased = new Set<string | null>();
  for (const clientId of new Set(runs.map(({ about }) => about.filters.clientId)))
    if ((await endOf(store, job.workspaceId, clientId)) === 'erased') erased.add(clientId);
  const gone = new Set(written);
  for (const { exports, completedAt, about } of runs) {
    const over = Date.parse(exportsEndAt(completedAt)) <= job.now.getTime();
    const kept = state.status === 'live' && !over && !erased.has(about.filters.clientId);
    for (const { key } of exports) {
      if (kept) gone.delete(key);
      else gone.add(key);
    }
  }
  for (const key of gone) await blobs.delete(key);
};
