import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { pause } from '#contracts/base/pause.ts';
import { type Projection, projections } from '../index.ts';
import { announcementSeconds, type ProjectOptions } from './project.ts';
import { makeShape } from './rebuild.ts';
import { liveGeneration, migrate } from './tables.ts';

/** How a process that reads the read models begins and ends. */

/** A process that does not renew its announcement for this long is dead. Seconds. */
const readerSeconds = 180;
const renewMs = (readerSeconds * 1_000) / 3;
/** How often a process that made a shape looks whether the projections follow it, milliseconds. */
const followedLookMs = 10_000;
/** How long a process leaves it to the projections of its build to make a missing shape, milliseconds. */
const standBackMs = 5_000;

interface UseOptions extends ProjectOptions {
  /** Default: all of this build. */
  readonly of?: readonly Projection[];
  /** Default: 5,000. */
  readonly standBackMs?: number;
}

export interface UsedReadModels {
  /** No former shape waits for this process any more. */
  stop(): Promise<void>;
}

/**
 * Announces the process as a reader of its shapes, and resolves once all their views are there: of an empty database at
 * once, of a changed shape when a process has made it, this one where no other does. Where this process did, it keeps the
 * tables fresh until a process of the projections follows them; if it dies before that, reads are stale until one comes.
 */
export const useReadModels = async (options: UseOptions): Promise<UsedReadModels> => {
  const { pool, signal, logger, of = projections } = options;
  const stopping = new AbortController();
  const either = AbortSignal.any([signal, stopping.signal]);
  const instance = randomUUID();
  const running: Promise<void>[] = [];
  const make = async (projection: Projection): Promise<void> => {
    logger.info({ projection: projection.name }, 'waiting for the tables of this shape');
    const end = await makeShape({ ...options, signal: either }, projection);
    if (end !== null) running.push(keepFresh(pool, projection, end, either));
  };
  const renew = async (): Promise<void> => {
    for (await pause(renewMs, either); !either.aborted; await pause(renewMs, either)) {
      try {
        // Some are missing where this process stood still for so long that another one dropped them.
        for (const projection of await announce(pool, instance, of)) await make(projection);
      } catch (error) {
        if (!either.aborted) logger.warn({ err: error }, 'the shapes that this process reads are not announced');
      }
    }
    await pool.query('delete from ops.shape_readers where instance = $1', [instance]).catch(() => undefined);
  };
  let missing = await announce(pool, instance, of);
  if (missing.length > 0) {
    await migrate(pool, of);
    missing = await announce(pool, instance, of);
  }
  running.push(renew());
  for (const projection of missing)
    if (!(await isMadeSoon(pool, projection, options.standBackMs ?? standBackMs, either))) await make(projection);
  return {
    stop: async () => {
      stopping.abort();
      await Promise.all(running);
    },
  };
};

/**
 * One statement: the announcement, and a lock on the rows of the shapes. A process that drops one of them locks its row
 * first, so either it finds the announcement or this finds the shape gone.
 * @returns projections whose shape is not live
 */
const announce = async (pool: Pool, instance: string, of: readonly Projection[]): Promise<readonly Projection[]> => {
  const { rows } = await pool.query<{ name: string }>({
    name: 'shape-readers',
    text: `
      with said as (
        insert into ops.shape_readers (instance, shapes, until)
        select $1, jsonb_object_agg(name, shape), now() + make_interval(secs => $4)
        from unnest($2::text[], $3::int4[]) as own (name, shape)
        on conflict (instance) do update set until = excluded.until
      ), gone as (
        delete from ops.shape_readers where until < now() - interval '1 hour'
      )
      select name from ops.projections
      where (name, shape) in (select * from unnest($2::text[], $3::int4[])) and live is not null for share`,
    values: [instance, of.map(({ name }) => name), of.map(({ shape }) => shape), readerSeconds],
  });
  return of.filter(({ name }) => !rows.some((row) => row.name === name));
};

const isMadeSoon = async (
  pool: Pool,
  projection: Projection,
  withinMs: number,
  signal: AbortSignal,
): Promise<boolean> => {
  for (const end = performance.now() + withinMs; performance.now() < end; await pause(200, signal)) {
    signal.throwIfAborted();
    if ((await liveGeneration(pool, projection)) !== null) return true;
  }
  return false;
};

/** @param end ends the consumer of this process */
const keepFresh = async (
  pool: Pool,
  { name, shape }: Projection,
  end: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> => {
  const isFollowed = async (): Promise<boolean> => {
    const { rows } = await pool.query<{ followed: boolean }>(
      `select exists (select from ops.projections p join ops.projection_readers r on r.name = p.name
         and r.generation = p.live and r.until > now() where p.name = $1 and p.shape = $2) as followed`,
      [name, shape],
    );
    return rows[0]?.followed === true;
  };
  // The announcement of the switch itself has lapsed by then.
  await pause((announcementSeconds + 1) * 1_000, signal);
  while (!signal.aborted && !(await isFollowed().catch(() => false))) await pause(followedLookMs, signal);
  await end();
};
