import type { Pool, PoolClient } from 'pg';
import { forgetParked } from '#runtime/consuming/parking.ts';
import { fence } from '#runtime/consuming/positions.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { hasRead, placePositions, until } from './catch-up.ts';
import { groupOf, type Projection, projectionOf } from './index.ts';
import { type ProjectOptions, project } from './project.ts';
import { withRebuildLock } from './rebuild-lock.ts';
import { replay } from './replay.ts';
import { announcementSeconds, liveGeneration } from './run.ts';
import { createTables, createViews, dropTables } from './tables.ts';

/**
 * Fills new tables of a projection beside the live ones while events go on: first from the store, up to a head taken
 * after the log's ends were noted, then from those ends. The revision guard absorbs the overlap. One transaction then
 * switches the views and fences the old generation. A rebuild that crashes leaves tables that no view shows; the next
 * rebuild drops them.
 */

export interface RebuildOptions extends ProjectOptions {
  readonly name: string;
}

export interface Rebuilt {
  readonly generation: number;
  /** Events read from the store. */
  readonly events: number;
  /** Whether the old tables are dropped; false while a process still announces that it reads them. */
  readonly dropped: boolean;
}

export const rebuild = (options: RebuildOptions): Promise<Rebuilt> =>
  withRebuildLock(options.pool, options.name, options.signal, (signal) =>
    rebuildAlone({ ...options, signal }, projectionOf(options.name)),
  );

const rebuildAlone = async (options: RebuildOptions, projection: Projection): Promise<Rebuilt> => {
  const { pool, store, log, codec, name, logger, signal } = options;
  const { live: old } = await liveGeneration(pool, name);
  const generation = await begin(pool, projection, old);
  logger.info({ projection: name, from: old, to: generation }, 'rebuild: reading the store');

  // The ends first: an event stored after the head taken below lies behind them in the log.
  const ends = await log.ends(projection.topics);
  const upTo = await store.head();
  const events = await replay({ pool, store, codec, projection, generation, live: old, upTo, signal });
  await placePositions(pool, groupOf(name, generation), ends, upTo);
  faultPoint('rebuild:before-consume');

  const over = new AbortController();
  const consumer = project(projection, generation, { ...options, signal: AbortSignal.any([signal, over.signal]) });
  const failed = (): string | undefined =>
    [...consumer.status().values()].find((lane) => lane.state === 'stopped')?.reason ?? undefined;
  try {
    // Under constant writes the exact end is never reached: close enough is a pass that takes no longer than this.
    for (let took = Infinity; took > nearMs; ) {
      const began = performance.now();
      const goal = await log.ends(projection.topics);
      await until(signal, async () => {
        const reason = failed();
        if (reason !== undefined) throw new Error(`rebuild of ${name} cannot go on: ${reason}`);
        return hasRead(pool, groupOf(name, generation), goal);
      });
      took = performance.now() - began;
    }
    faultPoint('rebuild:before-switch');
    await withMigrationLock(pool, (tx) => switchTo(tx, projection, old, generation));
    logger.info({ projection: name, generation, events }, 'rebuild: switched');
    faultPoint('rebuild:before-drop');
    // This consumer goes on until the followers of the live generation have noticed the switch, so that reads stay
    // fresh.
    const free = await until(signal, async () => (await readersOf(pool, name, old)) === 0, dropWaitMs).catch(
      () => false,
    );
    if (free) await withMigrationLock(pool, (tx) => dropTables(tx, projection, old));
    return { generation, events, dropped: free };
  } finally {
    over.abort();
    await consumer.done.catch(() => undefined);
  }
};

const dropWaitMs = (announcementSeconds + 5) * 1_000;
const nearMs = 500;

/** Draws the next generation and makes its tables; drops the tables of rebuilds that crashed. */
const begin = async (pool: Pool, projection: Projection, live: number): Promise<number> => {
  let generation = 0;
  await withMigrationLock(pool, async (tx) => {
    const { rows } = await tx.query('update ops.projections set newest = newest + 1 where name = $1 returning newest', [
      projection.name,
    ]);
    generation = rows[0].newest;
    for (let left = live + 1; left < generation; left += 1) {
      await dropTables(tx, projection, left);
    }
    await createTables(tx, projection, generation);
  });
  return generation;
};

/** Fences the old generation first: a batch that is under way commits before the switch, and a later one is refused. */
const switchTo = async (tx: PoolClient, projection: Projection, old: number, generation: number): Promise<void> => {
  await fence(tx, groupOf(projection.name, old));
  await forgetParked(tx, groupOf(projection.name, old));
  await createViews(tx, projection, generation);
  await tx.query('update ops.projections set live = $2, shape = $3 where name = $1', [
    projection.name,
    generation,
    projection.shape,
  ]);
};

const readersOf = async (pool: Pool, name: string, generation: number): Promise<number> => {
  const { rows } = await pool.query(
    'select count(*)::int as n from ops.projection_readers where name = $1 and generation = $2 and until > now()',
    [name, generation],
  );
  return rows[0].n;
};
