import { setTimeout as delay } from 'node:timers/promises';
import type { Pool, PoolClient, QueryConfig } from 'pg';
import { pause } from '#contracts/base/pause.ts';
import type { Lane } from '#contracts/ports/log.ts';
import type { Consumer } from '#runtime/consuming/consume.ts';
import { forgetParked } from '#runtime/consuming/parking.ts';
import { fence } from '#runtime/consuming/positions.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { withConnection } from '#runtime/postgres/transactions.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { groupOf, type Projection, projectionOf } from '../index.ts';
import { noteFollowing, noteRead, noteRebuild, noteSwitched, type RebuildReason } from './open-rebuilds.ts';
import { announcementSeconds, type ProjectOptions, project } from './project.ts';
import { replay } from './replay.ts';
import { completeIndexes, createViews, dropTables, liveGeneration, nextGeneration } from './tables.ts';

export type Ends = readonly { readonly lane: Lane; readonly nextOffset: bigint | null }[];

export const placePositions = async (pool: Pool, group: string, ends: Ends, position: bigint | null): Promise<void> => {
  await pool.query(
    `insert into ops.consumer_positions (consumer_group, lane, next_offset, position)
     select $1, lane, next_offset, $4::int8 from unnest($2::text[], $3::int8[]) as r (lane, next_offset)
     on conflict (consumer_group, lane) do update set next_offset = excluded.next_offset, position = excluded.position`,
    [group, ends.map((one) => one.lane), ends.map((one) => one.nextOffset), position],
  );
};

export const hasRead = async (pool: Pool, group: string, ends: Ends): Promise<boolean> => {
  const { rows } = await pool.query('select lane, next_offset from ops.consumer_positions where consumer_group = $1', [
    group,
  ]);
  const read = new Map<string, bigint>(rows.map((row) => [row.lane, BigInt(row.next_offset ?? 0)]));
  return ends.every(({ lane, nextOffset }) => (read.get(lane) ?? 0n) >= (nextOffset ?? 0n));
};

/** True when the condition holds, false after `limitMs`. */
export const until = async (
  signal: AbortSignal,
  holds: () => Promise<boolean>,
  limitMs = Infinity,
): Promise<boolean> => {
  for (const end = performance.now() + limitMs; performance.now() < end; ) {
    if (await holds()) return true;
    await delay(20, undefined, { signal });
  }
  return false;
};

/** How often the session that holds the lock is probed, and how long an answer may take. Milliseconds. */
const defaultBeatMs = 10_000;

/** Another process holds the lock. */
class RebuildRuns extends Error {}

/** SQL: whether a process of this database holds the lock of the rebuild of that name. */
export const isRebuilding = (name: string): string => `exists (select from pg_locks l
  where l.locktype = 'advisory' and l.granted and l.objsubid = 1
    and l.database = (select oid from pg_database where datname = current_database())
    and (l.classid::int8 << 32) | l.objid::int8 = hashtextextended('rebuild ' || ${name}, 0))`;

/**
 * Runs the rebuild of these names while no other process of this database rebuilds one of them. The signal of `work` aborts when the
 * session, and with it the lock, is lost: the process that takes the lock next drops the tables of this rebuild.
 * @throws RebuildRuns; Error where the lock was lost
 */
export const withRebuildLock = async <T>(
  pool: Pool,
  names: string | readonly string[],
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  beatMs = defaultBeatMs,
): Promise<T> =>
  withConnection(pool, async (session, died) => {
    // A pooled session would keep the lock; the server frees it when the session ends.
    died(new Error('a session that held a lock is not reused'));
    for (const name of [names].flat()) {
      const { rows } = await session.query('select pg_try_advisory_lock(hashtextextended($1, 0)) as ok', [
        `rebuild ${name}`,
      ]);
      if (rows[0]?.ok === true) continue;
      await session.query('select pg_advisory_unlock_all()');
      throw new RebuildRuns(`another rebuild of ${name} is running: wait until it ends`);
    }
    const name = [names].flat().join(', ');
    const lost = new AbortController();
    const lose = (cause: unknown): void =>
      lost.abort(new Error(`rebuild of ${name}: the session that held its lock was lost; start it again`, { cause }));
    session.on('error', lose);
    const ask = (text: string) => session.query({ text, query_timeout: beatMs / 2 } as QueryConfig).catch(lose);
    const beat = setInterval(() => ask('select 1'), beatMs);
    try {
      return await work(AbortSignal.any([signal, lost.signal]));
    } catch (error) {
      throw lost.signal.aborted ? lost.signal.reason : error;
    } finally {
      clearInterval(beat);
      // The server frees the lock some time after the goodbye, and until then it would refuse the next rebuild.
      if (!lost.signal.aborted) await ask('select pg_advisory_unlock_all()');
      session.off('error', lose);
    }
  });

export interface Rebuilt {
  readonly generation: number;
  /** Events read from the store. */
  readonly events: number;
  /** Whether the old tables are dropped; false while a process still announces that it reads them. */
  readonly dropped: boolean;
}

/**
 * Fills new tables of a projection beside the live ones of the same shape, and drops those. This process's consumer goes
 * on until the followers of the old generation have noticed the switch, so that reads stay fresh.
 */
export const rebuild = (options: ProjectOptions & { readonly name: string }): Promise<Rebuilt> => {
  const { pool, name } = options;
  const projection = projectionOf(name);
  return withRebuildLock(pool, name, options.signal, async (signal) => {
    const old = await liveGeneration(pool, projection);
    return dropFormer(
      { ...options, signal },
      projection,
      old,
      await replaceLive({ ...options, signal }, projection, old, 'asked'),
    );
  });
};

/** Behind the switch: waits until no process announces the tables that the views showed before, and drops them. */
export const dropFormer = async (
  { pool, signal }: Pick<ProjectOptions, 'pool' | 'signal'>,
  projection: Projection,
  old: number | null,
  { generation, events, end }: Replaced,
): Promise<Rebuilt> => {
  try {
    faultPoint('rebuild:before-drop');
    if (old === null) return { generation, events, dropped: true };
    const isFree = async (): Promise<boolean> => (await readersOf(pool, projection.name, old)) === 0;
    const free = await until(signal, isFree, dropWaitMs).catch(() => false);
    if (free) await withMigrationLock(pool, (tx) => dropTables(tx, projection, old));
    return { generation, events, dropped: free };
  } finally {
    await end();
  }
};

/**
 * Makes the tables of a projection's shape beside those of the former one, unless another process makes them or has: then
 * it waits for them. Readers of the former shape notice nothing. A process that dies before the switch leaves tables that
 * the next one drops; one that dies behind it leaves a shape that is live, and that its next reader continues.
 * @returns once the views are there: null, or the end of the consumer that keeps the tables fresh until it is called
 */
export const makeShape = async (
  options: ProjectOptions,
  projection: Projection,
): Promise<(() => Promise<void>) | null> => {
  const { pool, logger, signal } = options;
  const { name, shape } = projection;
  for (;;) {
    signal.throwIfAborted();
    if ((await liveGeneration(pool, projection)) !== null) return null;
    try {
      return await withRebuildLock(pool, name, signal, async (held) => {
        if ((await liveGeneration(pool, projection)) !== null) return null;
        logger.info({ projection: name, shape }, 'making the tables of this shape');
        const made = await replaceLive({ ...options, signal: held }, projection, null, 'shape');
        faultPoint('shape:after-switch');
        return made.end;
      });
    } catch (error) {
      if (!(error instanceof RebuildRuns)) throw error;
      await pause(shapeLookMs, signal);
    }
  }
};

/** How often a process looks whether another one has made the shape that both wait for. Milliseconds. */
const shapeLookMs = 1_000;

export interface Replaced {
  readonly generation: number;
  readonly events: number;
  /** Ends the consumer of the new generation. */
  readonly end: () => Promise<void>;
}

/**
 * Fills new tables of a projection beside live traffic: first from the store, up to a head taken after the log's ends were
 * noted, then from those ends. The revision guard absorbs the overlap. One transaction then points the views of the shape
 * at them and fences the old generation. A process that dies before leaves tables that no view shows; the next one drops
 * them.
 * @param old the generation that the views show until then; null: the shape has none
 */
const replaceLive = async (
  options: ProjectOptions,
  projection: Projection,
  old: number | null,
  reason: RebuildReason,
): Promise<Replaced> => {
  const { pool, store, log, codec, logger, signal } = options;
  const { name, shape } = projection;
  let generation = 0;
  await withMigrationLock(pool, async (tx) => {
    generation = await nextGeneration(tx, projection);
    await noteRebuild(tx, { name, shape, generation }, reason);
  });
  logger.info({ projection: name, from: old, to: generation }, 'rebuild: reading the store');

  // The ends first: an event stored after the head taken below lies behind them in the log.
  const ends = await log.ends(projection.topics);
  const upTo = await store.head();
  const live = await formerOf(pool, projection, old);
  const events = await replay({
    ...{ pool, store, codec, projection, generation, live, upTo, signal },
    took: (page) => noteRead(pool, upTo ?? 0n, page),
  });
  return goLive(options, projection, { old, generation, events, ends, upTo });
};

/** The tables that hold the store up to there, and what they replace. */
export interface Filled {
  readonly old: number | null;
  readonly generation: number;
  readonly events: number;
  /** Of the log, before `upTo` was asked for. */
  readonly ends: Ends;
  readonly upTo: bigint | null;
}

/** Follows the log until the tables are near its end, and switches. */
export const goLive = async (options: ProjectOptions, projection: Projection, filled: Filled): Promise<Replaced> => {
  const { pool, logger, signal } = options;
  const { name } = projection;
  const { old, generation, events, ends, upTo } = filled;
  await completeIndexes(pool, projection, generation, signal);
  faultPoint('rebuild:indexed');
  await placePositions(pool, groupOf(name, generation), ends, upTo);
  await noteFollowing(pool, name);
  faultPoint('rebuild:before-consume');

  const over = new AbortController();
  const consumer = project(projection, generation, { ...options, signal: AbortSignal.any([signal, over.signal]) });
  const end = async (): Promise<void> => {
    over.abort();
    await consumer.done.catch(() => undefined);
  };
  try {
    await catchUp(options, projection, generation, consumer);
    faultPoint('rebuild:before-switch');
    await withMigrationLock(pool, (tx) => switchTo(tx, projection, old, generation));
    logger.info({ projection: name, generation, events }, 'rebuild: switched');
    return { generation, events, end };
  } catch (error) {
    await end();
    throw error;
  }
};

/** The generation whose parked streams count as known: the one that is replaced, or the newest of any other shape. */
export const formerOf = async (pool: Pool, { name }: Projection, old: number | null): Promise<number | null> =>
  old ?? (await newestLive(pool, name));

/** Of any shape: the newest generation that a view shows. */
const newestLive = async (pool: Pool, name: string): Promise<number | null> => {
  const { rows } = await pool.query<{ live: number | null }>(
    'select max(live) as live from ops.projections where name = $1',
    [name],
  );
  return rows[0]?.live ?? null;
};

/**
 * Under constant writes the exact end is never reached: close enough is a pass that takes no longer than this, and a little
 * longer after each that did, because a busy machine may have none so short. What is served is as old as that at the switch.
 */
const nearMs = 500;
const [nearerMs, farthestMs] = [100, 4_000];

const catchUp = async (
  { pool, log, signal }: ProjectOptions,
  { name, topics }: Projection,
  generation: number,
  consumer: Consumer,
): Promise<void> => {
  const failed = (): string | undefined =>
    [...consumer.status().values()].find((lane) => lane.state === 'stopped')?.reason ?? undefined;
  for (let took = Infinity, near = nearMs; took > near; near = Math.min(near + nearerMs, farthestMs)) {
    const began = performance.now();
    const goal = await log.ends(topics);
    await until(signal, async () => {
      const reason = failed();
      if (reason !== undefined) throw new Error(`rebuild of ${name} cannot go on: ${reason}`);
      return hasRead(pool, groupOf(name, generation), goal);
    });
    took = performance.now() - began;
  }
};

const dropWaitMs = (announcementSeconds + 5) * 1_000;

/**
 * Fences the old generation first: a batch that is under way commits before the switch, and a later one is refused. The
 * first one of a shape is announced, so that no process of another shape drops it before its first reader has come.
 */
const switchTo = async (
  tx: PoolClient,
  projection: Projection,
  old: number | null,
  generation: number,
): Promise<void> => {
  const { name, shape } = projection;
  if (old !== null) {
    await fence(tx, groupOf(name, old));
    await forgetParked(tx, groupOf(name, old));
  }
  await createViews(tx, projection, generation);
  await noteSwitched(tx, name);
  await tx.query('update ops.projections set live = $3 where name = $1 and shape = $2', [name, shape, generation]);
  if (old !== null) return;
  await tx.query(
    `insert into ops.projection_readers (instance, name, generation, until)
     values (gen_random_uuid(), $1, $2, now() + make_interval(secs => $3))`,
    [name, generation, announcementSeconds],
  );
};

const readersOf = async (pool: Pool, name: string, generation: number): Promise<number> => {
  const { rows } = await pool.query(
    'select count(*)::int as n from ops.projection_readers where name = $1 and generation = $2 and until > now()',
    [name, generation],
  );
  return rows[0].n;
};
