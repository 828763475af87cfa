import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { pause } from '#contracts/base/pause.ts';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import { restingOf } from '#runtime/consuming/lane-health.ts';
import type { ConsumeMetrics } from '#runtime/consuming/options.ts';
import type { EventCodec } from '#runtime/eventing/codec.ts';
import { stopsLane } from '#runtime/process/faults.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { groupOf, type Projection, projectionOf, projections } from '../index.ts';
import { Projector } from './apply.ts';
import { addColumns, lackingColumns } from './tables.ts';

export interface ProjectOptions {
  readonly log: Log;
  readonly store: EventStore;
  readonly pool: Pool;
  readonly codec: EventCodec;
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly metrics?: ConsumeMetrics;
}

/**
 * Consumes the log for one generation of a projection, live or being rebuilt. Both may commit with relaxed durability:
 * their effects come from the log alone, and the position moves in the same transaction.
 */
export const project = (
  projection: Projection,
  generation: number,
  { log, store, pool, codec, signal, logger, metrics }: ProjectOptions,
): Consumer => {
  const projector = new Projector(projection, generation);
  return consume({
    log,
    store,
    pool,
    codec,
    signal,
    logger,
    group: groupOf(projection.name, generation),
    topics: projection.topics,
    kinds: projector.kinds,
    apply: (tx, events) => projector.apply(tx, events),
    relaxed: true,
    ...(metrics === undefined ? {} : { metrics }),
  });
};

interface RunOptions extends ProjectOptions {
  /** Projections to run; empty = all. */
  readonly names: readonly string[];
}

interface ProjectionStatus {
  readonly name: string;
  /** The generation that the runner consumes for; null while it waits for a rebuild. */
  readonly generation: number | null;
  /** Why the runner does not work as it should; null when it does. */
  readonly reason: string | null;
}

export interface RunningProjections {
  /** Resolves when the signal ends all runners; rejects with the first error that a runner cannot recover from. */
  readonly done: Promise<void>;
  status(): readonly ProjectionStatus[];
  /** The running consumers, one for each projection. */
  consumers(): readonly Consumer[];
  /** For /readyz: rejects with the reasons when a runner is stopped, waits for a dependency or waits for a rebuild. */
  check(): Promise<string | null>;
}

/** How often a runner checks which generation is live and announces the one it reads. Milliseconds. */
const announceMs = 1_000;
/** An announcement that is not renewed for this long belongs to a dead process. Seconds. */
export const announcementSeconds = 15;
/** An unchanged announcement is renewed after this time, milliseconds. */
const renewAnnouncementMs = (announcementSeconds * 1_000) / 3;

interface Generation {
  readonly live: number;
  readonly shape: number;
}

export const liveGeneration = async (pool: Pool, name: string): Promise<Generation> => {
  const { rows } = await pool.query('select live, shape from ops.projections where name = $1', [name]);
  return rows[0] ?? noTables(name);
};

const noTables = (name: string): never => {
  throw new BrokenInvariant(`projection ${name} has no tables: run migrations first`);
};

/** Runners of a process share the answer of one query for this long, milliseconds. */
const sharedLookMs = 500;

/** The generation that one runner reads. */
interface Announcement {
  readonly instance: string;
  readonly name: string;
  readonly generation: number;
}

interface Look {
  readonly at: number;
  readonly rows: Promise<ReadonlyMap<string, Generation>>;
  /** Asked by the first runner that has to know: names of projections whose live tables lack columns. */
  lacking?: Promise<ReadonlySet<string>>;
}

class Generations {
  readonly #pool: Pool;
  readonly #wanted: readonly Projection[];
  readonly #announced = new Map<string, Announcement>();
  /** When the announcements are renewed; monotonic milliseconds. */
  #renewAt = 0;
  #look: Look | null = null;

  constructor(pool: Pool, wanted: readonly Projection[]) {
    this.#pool = pool;
    this.#wanted = wanted;
  }

  async of(name: string): Promise<Generation> {
    return this.#looked(async ({ rows }) => (await rows).get(name) ?? noTables(name));
  }

  /** Adds the columns that the live tables lack. A look that is shared begins after the generation was read. */
  async complete(projection: Projection): Promise<void> {
    const lacking = await this.#looked((look) => {
      look.lacking ??= look.rows.then(() => lackingColumns(this.#pool, this.#wanted));
      return look.lacking;
    });
    if (lacking.has(projection.name)) await addColumns(this.#pool, [projection]);
  }

  async #looked<T>(ask: (look: Look) => Promise<T>): Promise<T> {
    const now = performance.now();
    if (this.#look === null || now >= this.#look.at + sharedLookMs) this.#look = { at: now, rows: this.#read() };
    const look = this.#look;
    try {
      return await ask(look);
    } catch (error) {
      if (this.#look === look) this.#look = null;
      throw error;
    }
  }

  /** All announcements of a process are renewed in one statement: each statement is a write that waits for the disk. */
  async announce(announcement: Announcement): Promise<void> {
    const { instance, generation } = announcement;
    const isNew = this.#announced.get(instance)?.generation !== generation;
    const now = performance.now();
    if (isNew) {
      // Set before the write, so that a renewal by another runner cannot restore the old generation.
      this.#announced.set(instance, announcement);
      return this.#write([announcement], () => this.#announced.delete(instance));
    }
    if (now < this.#renewAt) return;
    const before = this.#renewAt;
    this.#renewAt = now + renewAnnouncementMs;
    return this.#write([...this.#announced.values()], () => (this.#renewAt = before));
  }

  /** @param failed called before it throws, so that the next round announces again */
  async #write(announcements: readonly Announcement[], failed: () => unknown): Promise<void> {
    const instances = announcements.map(({ instance }) => instance);
    const names = announcements.map(({ name }) => name);
    const generations = announcements.map(({ generation }) => generation);
    try {
      await this.#pool.query(
        `insert into ops.projection_readers (instance, name, generation, until)
         select instance, name, generation, now() + make_interval(secs => $4)
         from unnest($1::uuid[], $2::text[], $3::int[]) as r (instance, name, generation)
         on conflict (instance, name) do update set generation = excluded.generation, until = excluded.until`,
        [instances, names, generations, announcementSeconds],
      );
    } catch (error) {
      failed();
      throw error;
    }
  }

  /** No rebuild waits for this reader any more. */
  async leave(instance: string): Promise<void> {
    this.#announced.delete(instance);
    await this.#pool.query('delete from ops.projection_readers where instance = $1', [instance]);
  }

  async #read(): Promise<ReadonlyMap<string, Generation>> {
    const { rows } = await this.#pool.query<Generation & { readonly name: string }>(
      'select name, live, shape from ops.projections',
    );
    return new Map(rows.map((row) => [row.name, row]));
  }
}

class Runner {
  readonly #options: RunOptions;
  readonly #generations: Generations;
  readonly #projection: Projection;
  readonly #instance = randomUUID();
  #generation: number | null = null;
  #consumer: Consumer | null = null;
  #waits: string | null = 'starting';

  constructor(options: RunOptions, projection: Projection, generations: Generations) {
    this.#options = options;
    this.#generations = generations;
    this.#projection = projection;
  }

  get consumer(): Consumer | null {
    return this.#consumer;
  }

  status(): ProjectionStatus {
    const ill = [...(this.#consumer?.status() ?? [])].filter(([, lane]) => lane.state !== 'running');
    const reasons = ill.map(([lane, { state, reason, restsMs }]) => `${lane} ${state}: ${reason}${restingOf(restsMs)}`);
    return {
      name: this.#projection.name,
      generation: this.#generation,
      reason: this.#waits ?? (reasons.length === 0 ? null : reasons.join('; ')),
    };
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    try {
      while (!signal.aborted) await this.#follow();
    } finally {
      await this.#generations.leave(this.#instance).catch(() => undefined);
    }
  }

  /** Consumes for the generation that is live now, until another one goes live. */
  async #follow(): Promise<void> {
    const { signal, logger } = this.#options;
    const { name } = this.#projection;
    const live = await this.#live();
    if (live === null) return;
    this.#generation = live;
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    const consumer = project(this.#projection, live, { ...this.#options, signal: either });
    this.#consumer = consumer;
    logger.info({ projection: name, generation: live }, 'projecting');
    const ended = consumer.done.finally(() => over.abort());
    while (!either.aborted) {
      await pause(announceMs, either);
      // A rebuild's switch fences the old consumer, so it can do no harm until this check notices.
      const now = await this.#live();
      if (now !== live) over.abort();
    }
    await ended;
    this.#consumer = null;
    this.#generation = null;
  }

  /** The live generation, announced as the one that this runner reads; null while this code can write none. */
  async #live(): Promise<number | null> {
    const { signal, logger } = this.#options;
    const { name, shape } = this.#projection;
    try {
      const found = await this.#generations.of(name);
      if (found.shape !== shape) {
        this.#waits = `tables of shape ${found.shape} are live, this code writes shape ${shape}: rebuild ${name}`;
        logger.warn({ projection: name }, this.#waits);
        await pause(announceMs, signal);
        return null;
      }
      if (found.live !== this.#generation) await this.#generations.complete(this.#projection);
      await this.#generations.announce({ instance: this.#instance, name, generation: found.live });
      this.#waits = null;
      return found.live;
    } catch (error) {
      if (stopsLane(error)) throw error;
      await pause(announceMs, signal);
      // A running consumer waits for the database by itself.
      return this.#generation;
    }
  }
}

/**
 * Runs projections, one consumer each, on the live generation; the runner follows when another generation goes live.
 */
export const runProjections = (options: RunOptions): RunningProjections => {
  const wanted = options.names.length === 0 ? projections : options.names.map(projectionOf);
  const generations = new Generations(options.pool, wanted);
  const runners = wanted.map((projection) => new Runner(options, projection, generations));
  const done = Promise.all(runners.map((runner) => runner.run())).then(() => undefined);
  done.catch(() => undefined);
  const status = (): readonly ProjectionStatus[] => runners.map((runner) => runner.status());
  return {
    done,
    status,
    consumers: () => runners.flatMap((runner) => runner.consumer ?? []),
    check: async () => {
      const ill = status().filter((one) => one.reason !== null);
      if (ill.length > 0) throw new Error(ill.map(({ name, reason }) => `${name}: ${reason}`).join('; '));
      return null;
    },
  };
};
