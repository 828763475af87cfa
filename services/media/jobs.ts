import type { Pool, PoolClient } from 'pg';
import { dueSql, notLeased, type WorkTable } from '#runtime/work/due-work.ts';

/**
 * Assets that need work. A row only names the asset; the stream decides what the worker does. The worker deletes the
 * row when nothing is left to do, so a worker finds work that a crash interrupted.
 */

export interface DueJob {
  readonly assetId: string;
  readonly workspaceId: string;
}

/**
 * What a job waits for: a download, which takes as long as a foreign server likes; a slot for a video, which takes
 * hours; or a slot for any other file, which takes seconds. Each lane has slots of its own, so no lane delays another.
 */
export type JobLane = 'downloads' | 'videos' | 'files';

export interface PoisonCandidate extends DueJob {
  /** Milliseconds since it became due, or since the last try began. */
  readonly waitedMs: number;
}

export interface Begun {
  /** This try included. */
  readonly attempts: number;
  readonly failures: number;
  readonly fetches: number;
  readonly written: readonly string[];
}

export interface Reschedule {
  /** 0: the job keeps its due time and so its place. */
  readonly waitMs: number;
  /** The file is not to blame, and the try is not counted against it. */
  readonly infrastructureFault: boolean;
  readonly failed: boolean;
  readonly fetch: boolean;
  /** The lane in which it waits next. */
  readonly lane: JobLane;
}

export interface Asked {
  readonly assetId: string;
  readonly workspaceId: string;
  readonly revision: number;
  /** A post waits for it: it goes before the other files of its workspace. */
  readonly urgent: boolean;
  /** Its file must be downloaded first. */
  readonly download: boolean;
}

const enqueueSql = `
insert into ops.media_jobs (asset_id, workspace_id, revision, due_at, fetch_at)
select id, workspace, revision, case when download then 'infinity' else due end, case when download then due end
from (
  select *, case when urgent then now() - interval '1 day' else now() end as due
  from unnest($1::uuid[], $2::uuid[], $3::int8[], $4::bool[], $5::bool[])
    as asked (id, workspace, revision, urgent, download)
) asked
on conflict (asset_id) do update
  set revision = greatest(media_jobs.revision, excluded.revision),
    due_at = case when media_jobs.fetch_at is null then least(media_jobs.due_at, excluded.due_at) else 'infinity' end,
    fetch_at = case when media_jobs.fetch_at is not null
      then least(media_jobs.fetch_at, excluded.fetch_at, excluded.due_at) end`;

/** Runs in the transaction that moves the consumer's position, so no event is lost and none counts twice. */
export const enqueue = async (tx: PoolClient, asked: readonly Asked[]): Promise<void> => {
  const newest = new Map<string, Asked>();
  for (const one of asked) {
    const before = newest.get(one.assetId);
    const [urgent, download] = [one.urgent || before?.urgent === true, one.download || before?.download === true];
    newest.set(one.assetId, { ...one, urgent, download });
  }
  // Writes in the order of the ids, so that the transactions of two lanes never deadlock.
  const rows = [...newest.values()].sort((a, b) => (a.assetId < b.assetId ? -1 : 1));
  if (rows.length === 0) return;
  await tx.query(enqueueSql, [
    rows.map(({ assetId }) => assetId),
    rows.map(({ workspaceId }) => workspaceId),
    rows.map(({ revision }) => revision),
    rows.map(({ urgent }) => urgent),
    rows.map(({ download }) => download),
  ]);
};

/**
 * After so many tries without an end a file is a poison candidate. The worker then works on it alone, so that a crash
 * can be blamed on this file, and other files are not given up because of it.
 */
export const poisonCandidateAfter = 2;

const table = (due: string, where: string): WorkTable => ({
  name: 'ops.media_jobs',
  id: 'asset_id',
  due,
  where,
  columns: 'j.asset_id::text as "assetId", j.workspace_id::text as "workspaceId"',
});

/** A job in the lane of downloads is due in no other lane: its `due_at` is infinite. */
const lanes: Readonly<Record<JobLane, WorkTable>> = {
  downloads: table('fetch_at', 'fetch_at is not null'),
  videos: table('due_at', `video and attempts < ${poisonCandidateAfter}`),
  files: table('due_at', `not video and attempts < ${poisonCandidateAfter}`),
};

/** Most jobs of one lane in a search. */
const maxDue = 500;

/** The poison candidate that has waited longest, unless a worker holds it. */
const candidateSql = `
select asset_id::text as "assetId", workspace_id::text as "workspaceId",
  extract(epoch from now() - greatest(due_at, tried_at))::float8 * 1000 as "waitedMs"
from ops.media_jobs
where attempts >= ${poisonCandidateAfter} and fetch_at is null and due_at <= now() and ${notLeased('asset_id', '$1')}
order by greatest(due_at, tried_at) limit 1`;

const rescheduleSql = `
update ops.media_jobs j set due_at = case when $6::text = 'downloads' then 'infinity' else next.at end,
  fetch_at = case when $6 = 'downloads' then next.at end, video = $6 = 'videos',
  attempts = greatest(0, attempts - $3), failures = failures + $4, fetches = fetches + $5
from (
  select asset_id, case when $2::float8 = 0 then coalesce(fetch_at, due_at) else now() + $2 * interval '1 millisecond' end as at
  from ops.media_jobs where asset_id = $1
) next
where j.asset_id = next.asset_id`;

export class MediaJobs {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Poison candidates are left out. */
  async due(leaseKind: string, ofEach: number, lane: JobLane): Promise<readonly DueJob[]> {
    const values = [leaseKind, ofEach, maxDue];
    return (await this.#pool.query<DueJob>({ name: `media-due-${lane}`, text: dueSql(lanes[lane]), values })).rows;
  }

  async poisonCandidate(leaseKind: string): Promise<PoisonCandidate | null> {
    const query = { name: 'media-poison-candidate', text: candidateSql, values: [leaseKind] };
    return (await this.#pool.query<PoisonCandidate>(query)).rows[0] ?? null;
  }

  /**
   * Counts the try before any work: else a file that kills its worker would begin for ever. Tries at an earlier
   * revision of the stream no longer count. Null: there is no row.
   * @param counted false for a download: a death of the worker may be the fault of another file and does not count
   */
  async begin(assetId: string, revision: number, counted = true): Promise<Begun | null> {
    const { rows } = await this.#pool.query<Begun>(
      `update ops.media_jobs set begun_at = $2, tried_at = now(), video = false,
         attempts = case when begun_at = $2 then attempts else 0 end + $3,
         failures = case when begun_at = $2 then failures else 0 end
       where asset_id = $1 returning attempts, failures, fetches, written`,
      [assetId, revision, counted ? 1 : 0],
    );
    return rows[0] ?? null;
  }

  /** The file is downloaded and about to be read: from now on a death of the worker counts. */
  async count(assetId: string): Promise<void> {
    await this.#pool.query('update ops.media_jobs set attempts = attempts + 1 where asset_id = $1', [assetId]);
  }

  /** False: the row is gone, and the caller must write no blob, because no worker would find it again. */
  async note(assetId: string, keys: readonly string[]): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      'update ops.media_jobs set written = written || $2::text[] where asset_id = $1',
      [assetId, keys],
    );
    return rowCount === 1;
  }

  /** Deletes the row unless a later event asked for work. @param revision of the stream up to which the work is done */
  async done(assetId: string, revision: number): Promise<boolean> {
    const { rowCount } = await this.#pool.query('delete from ops.media_jobs where asset_id = $1 and revision <= $2', [
      assetId,
      revision,
    ]);
    return rowCount === 1;
  }

  /** Deletes the row, even if a later event asked for work. */
  async drop(assetId: string): Promise<void> {
    await this.#pool.query('delete from ops.media_jobs where asset_id = $1', [assetId]);
  }

  /** Milliseconds since the first call for this asset, when the library already no longer showed it. */
  async hiddenMs(assetId: string): Promise<number> {
    const { rows } = await this.#pool.query<{ ms: number }>(
      `update ops.media_jobs set hidden_at = coalesce(hidden_at, now()) where asset_id = $1
       returning extract(epoch from now() - hidden_at)::float8 * 1000 as ms`,
      [assetId],
    );
    return rows[0]?.ms ?? 0;
  }

  async reschedule(assetId: string, how: Reschedule): Promise<void> {
    await this.#pool.query(rescheduleSql, [
      assetId,
      how.waitMs,
      how.infrastructureFault ? 1 : 0,
      how.failed ? 1 : 0,
      how.fetch ? 1 : 0,
      how.lane,
    ]);
  }

  /**
   * A worker that lost its lease did not die, so its try does not count, unless a worker has begun at a newer revision.
   */
  async uncount(assetId: string, revision: number): Promise<void> {
    await this.#pool.query(
      'update ops.media_jobs set attempts = greatest(0, attempts - 1) where asset_id = $1 and begun_at = $2',
      [assetId, revision],
    );
  }

  async length(): Promise<number> {
    const { rows } = await this.#pool.query<{ n: string }>('select count(*) as n from ops.media_jobs');
    return Number(rows[0]?.n ?? 0);
  }
}
