import type { Pool } from 'pg';

/**
 * The progress of long work, for callers who wait. Progress is worthless once the work has ended, so the table is
 * unlogged: after a crash of Postgres the table is empty, and the next report of a worker fills it.
 */

/** Milliseconds after which a report is too old: its worker has died. */
const freshMs = 60_000;

/** @param done 0–1 */
export const reportProgress = async (pool: Pool, id: string, done: number): Promise<void> => {
  await pool.query({
    name: 'progress-report',
    text: `insert into ops.progress (id, done) values ($1, $2)
           on conflict (id) do update set done = excluded.done, at = now()`,
    values: [id, done],
  });
};

export const endProgress = async (pool: Pool, id: string): Promise<void> => {
  await pool.query('delete from ops.progress where id = $1', [id]);
};

/** The progress of running work, 0–1. */
export const progressOf = async (pool: Pool, ids: readonly string[]): Promise<ReadonlyMap<string, number>> => {
  if (ids.length === 0) return new Map();
  const { rows } = await pool.query<{ id: string; done: number }>({
    name: 'progress-of',
    text: `select id::text as id, done from ops.progress
           where id = any($1::uuid[]) and at > now() - $2 * interval '1 millisecond'`,
    values: [ids, freshMs],
  });
  return new Map(rows.map(({ id, done }) => [id, done]));
};
