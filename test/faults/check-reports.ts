import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import type pg from 'pg';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import { type ReportRun, report } from '#domain/report.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { kindOf } from '#schemas/topics.ts';

/** Invariants of reports at rest: every run has ended, once, and its files are exactly those of its stream. */

/** Whether a worker ever ran: otherwise there is nothing to wait for. */
const everRan = async (pool: pg.Pool): Promise<boolean> => {
  const there = await pool.query(`select to_regclass('ops.report_jobs') as there`);
  if (there.rows[0].there === null) return false;
  const { rows } = await pool.query(`select 1 from ops.consumer_positions where consumer_group = 'reports' limit 1`);
  return rows.length > 0;
};

export const reportsAtRest = async (pool: pg.Pool): Promise<boolean> => {
  if (!(await everRan(pool))) return true;
  const { rows } = await pool.query(
    `select exists (select from ops.report_jobs) as busy,
       exists (select from ops.report_schedules where due_at is null or due_at < now() + interval '5 seconds') as due,
       exists (select from unnest(array['reports', 'workspace']) as topic
         join (select topic, max(position) as position from es.events where topic is not null group by topic) e using (topic)
         where coalesce((select max(position) from ops.consumer_positions where consumer_group = 'reports'), 0)
           < e.position) as behind`,
  );
  const { busy, due, behind } = rows[0];
  return !busy && !due && !behind;
};

export interface ReportsCheck {
  readonly violations: readonly string[];
  /** Requested runs. */
  readonly runs: number;
}

export const checkReports = async (
  streams: ReadonlyMap<string, readonly DecodedEvent[]>,
  { pool, blobs, blobRoot }: { readonly pool: pg.Pool; readonly blobs: BlobStore; readonly blobRoot: string },
): Promise<ReportsCheck> => {
  if (!(await everRan(pool))) return { violations: [], runs: 0 };
  const violations: string[] = [];
  const runIds = new Set<string>();
  const workspaces = new Set<string>();
  for (const [stream, events] of streams) {
    if (kindOf(stream) !== 'report') continue;
    const story = events.map(({ type }) => type.replace(/^Report/, '')).join(' ');
    const wrong = (what: string): void => void violations.push(`${stream} ${what}: ${story}`);
    const workspaceId = events[0]?.metadata.workspaceId ?? '';
    workspaces.add(workspaceId);
    const state = foldEvents(report, events);
    if (state.status !== 'live') {
      wrong(`is ${state.status}`);
      continue;
    }
    const planned = events.filter(({ type, data }) => type === 'ReportRunRequested' && data.by === 'schedule').length;
    if (state.definition.schedule !== null && planned !== 1)
      wrong(`was run ${planned} times by a schedule that was due once`);
    for (const [runId, run] of state.runs) {
      runIds.add(runId);
      const said = events.filter((one) => one.data.runId === runId).map(({ type }) => type);
      if (said.length !== 2) wrong(`says of the run ${runId} ${said.join(', ')}`);
      for (const what of await ofFiles(run, `${workspaceId}/reports/${runId}`, blobs, blobRoot)) {
        wrong(`has a run ${runId} that ${what}`);
      }
    }
  }
  for (const workspaceId of workspaces) {
    const folders = await readdir(path.join(blobRoot, workspaceId, 'reports')).catch(() => []);
    for (const folder of folders)
      if (!runIds.has(folder)) violations.push(`there are files of a run ${folder}, which nobody asked for`);
  }
  return { violations, runs: runIds.size };
};

const ofFiles = async (
  run: ReportRun,
  folder: string,
  blobs: BlobStore,
  blobRoot: string,
): Promise<readonly string[]> => {
  const wrong: string[] = [];
  const exports = run.status === 'completed' ? run.exports : [];
  if (run.status === 'completed') {
    const formats = exports.map(({ format }) => format).join(' ');
    if (formats !== run.formats.join(' ')) wrong.push(`was asked for as ${run.formats.join(' ')} and has ${formats}`);
  }
  for (const { key, bytes, sha256 } of exports) {
    const found = await blobs.get(key).catch(() => null);
    const body = found === null ? null : await buffer(found.body);
    if (body === null) wrong.push(`names the blob ${key}, which is not there`);
    else if (body.length !== bytes || createHash('sha256').update(body).digest('hex') !== sha256)
      wrong.push(`names the blob ${key}, which has other bytes`);
  }
  // NOTE: `~` separates a key from the version that holds its bytes.
  const there = (await readdir(path.join(blobRoot, folder)).catch(() => [])).filter((name) => !name.includes('~'));
  const named = new Set(exports.map(({ key }) => path.posix.basename(key)));
  for (const name of there) if (!named.has(name)) wrong.push(`does not name the blob ${name}, which is there`);
  return wrong;
};
