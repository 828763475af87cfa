import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { pause } from '#contracts/base/pause.ts';
import { type Projection, projections } from '../index.ts';
import { writersOf } from './former-shapes.ts';
import { announcementSeconds, type ProjectOptions, projectUnannounced } from './project.ts';
import { makeShape } from './rebuild.ts';
import { liveGeneration, migrate } from './tables.ts';

/** How a process that reads the read models begins and ends. */

/** A process that does not renew its announcement for this long is dead. Seconds. */
const readerSeconds = 180;
const renewMs = (readerSeconds * 1_000) / 3;
/**
 * How often a process looks whether projections write what it reads, milliseconds: while the database has shapes of another
 * build too, and while it has those of this one alone. Each thread of standalone looks.
 */
const [mixedLookMs, ownLookMs] = [2_000, 10_000];
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
 * once, of a changed shape when a process has made it, this one where no other does. It writes a shape that it made, or
 * that another build beside it has in another form, for as long as no process of the projections does: those of the other
 * build may be all that run, while a rollout is under way or taken back. If it dies, reads are stale until one comes.
 */
export const useReadModels = async (options: UseOptions): Promise<UsedReadModels> => {
  const { pool, signal, logger, of = projections } = options;
  const stopping = new AbortController();
  const either = AbortSignal.any([signal, stopping.signal]);
  const instance = randomUUID();
  const fresh = new FreshShapes({ ...options, signal: either }, of);
  const make = async (projection: Projection): Promise<void> => {
    logger.info({ projection: projection.name }, 'waiting for the tables of this shape');
    const end = await makeShape({ ...options, signal: either }, projection);
    if (end !== null) fresh.made(projection, end);
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
  const running = [renew(), fresh.run()];
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

/** The consumer with which this process writes a shape. */
interface Kept {
  /** Null: the one that its maker started. */
  readonly generation: number | null;
  readonly end: () => Promise<void>;
  /** Monotonic milliseconds; before that a projection that died may still be announced. */
  readonly endsAfter: number;
}

interface ShapeRow {
  readonly name: string;
  readonly shape: number;
  readonly live: number;
  /** Whether projections, of this build or a newer one, announce that they write it. */
  readonly followed: boolean;
}

/** Writes the shapes of a process that reads, where no projections of its build do. */
class FreshShapes {
  readonly #options: ProjectOptions;
  readonly #of: readonly Projection[];
  readonly #kept = new Map<string, Kept>();

  constructor(options: ProjectOptions, of: readonly Projection[]) {
    this.#options = options;
    this.#of = of;
  }

  /** @param end ends the consumer that keeps the new tables fresh. The switch itself was announced, and that lapses. */
  made({ name }: Projection, end: () => Promise<void>): void {
    const endsAfter = performance.now() + (announcementSeconds + 1) * 1_000;
    this.#kept.set(name, { generation: null, end, endsAfter });
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    for (let lookMs = mixedLookMs; ; ) {
      await pause(lookMs, signal);
      if (signal.aborted) break;
      // Without an answer all stays as it is.
      const rows = await this.#look().catch(() => null);
      if (rows === null) continue;
      for (const projection of this.#of) await this.#keep(projection, rows);
      const isMixed = rows.length > new Set(rows.map(({ name }) => name)).size;
      lookMs = isMixed || this.#kept.size > 0 ? mixedLookMs : ownLookMs;
    }
    await Promise.all([...this.#kept.values()].map(({ end }) => end()));
  }

  async #keep(projection: Projection, rows: readonly ShapeRow[]): Promise<void> {
    const { name, shape } = projection;
    const shapes = rows.filter((row) => row.name === name);
    const own = shapes.find((row) => row.shape === shape);
    const kept = this.#kept.get(name);
    if (kept !== undefined) {
      const isOver = own?.followed !== false || (kept.generation !== null && kept.generation !== own.live);
      if (!isOver || performance.now() < kept.endsAfter) return;
      this.#kept.delete(name);
      await kept.end();
      this.#options.logger.info({ projection: name, shape }, 'projections write this shape again');
    } else if (own?.followed === false && shapes.length > 1) this.#write(projection, own.live);
  }

  #write(projection: Projection, generation: number): void {
    const { signal, logger } = this.#options;
    const { name, shape } = projection;
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    logger.info({ projection: name, shape, generation }, 'no projections write this shape: this process does');
    const consumer = projectUnannounced(projection, generation, { ...this.#options, signal: either });
    const kept: Kept = {
      generation,
      endsAfter: 0,
      end: async () => {
        over.abort();
        await consumer.done.catch(() => undefined);
      },
    };
    this.#kept.set(name, kept);
    consumer.done.catch((error: unknown) => {
      logger.warn({ projection: name, err: error }, 'this process cannot write the shape that it reads');
      if (this.#kept.get(name) === kept) this.#kept.delete(name);
    });
  }

  async #look(): Promise<readonly ShapeRow[]> {
    const { rows } = await this.#options.pool.query<ShapeRow>({
      name: 'shapes-followed',
      text: `
        select name, shape, live, exists (select from ops.projection_readers r
          where r.name in (p.name, $1 || p.name) and r.generation = p.live and r.until > now()) as followed
        from ops.projections p where live is not null`,
      values: [writersOf('')],
    });
    return rows;
  }
}
