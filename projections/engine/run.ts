import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { backOff } from '#contracts/base/back-off.ts';
import { pause } from '#contracts/base/pause.ts';
import type { Consumer } from '#runtime/consuming/consume.ts';
import { restingOf } from '#runtime/consuming/lane-health.ts';
import { stopsLane } from '#runtime/process/faults.ts';
import { type Projection, projectionOf, projections } from '../index.ts';
import { FormerShapes, FormerWriter, writersOf } from './former-shapes.ts';
import { announcementSeconds, type ProjectOptions, project } from './project.ts';
import { makeShape } from './rebuild.ts';

interface RunOptions extends ProjectOptions {
  /** Projections to run; empty = all. */
  readonly names: readonly string[];
  /** The projections that there are. Default: those of this build. */
  readonly of?: readonly Projection[];
  /** As `FormerShapes` takes it. */
  readonly dropAfterMs?: number;
}

interface ProjectionStatus {
  readonly name: string;
  /** The generation that the runner consumes for; null while its shape is being made. */
  readonly generation: number | null;
  /** Why the runner does not work as it should; null when it does. */
  readonly reason: string | null;
}

export interface RunningProjections {
  /** Resolves when the signal ends all runners; rejects with the first error that a runner cannot recover from. */
  readonly done: Promise<void>;
  status(): readonly ProjectionStatus[];
  /** The running consumers: one for each projection, and one for its former shape while that has tables. */
  consumers(): readonly Consumer[];
  /** For /readyz: rejects with the reasons when a runner is stopped, waits for a dependency or makes its shape. */
  check(): Promise<string | null>;
}

/** How often a runner checks which generation is live and announces the one it reads. Milliseconds. */
const announceMs = 1_000;
/** An unchanged announcement is renewed after this time, milliseconds. */
const renewAnnouncementMs = (announcementSeconds * 1_000) / 3;

/** A shape of a projection, and the generation that its views show. */
interface LiveShape {
  readonly name: string;
  readonly shape: number;
  readonly live: number;
}

/** Runners of a process share the answer of one query for this long, milliseconds. */
const sharedLookMs = 500;

/** The generation that one runner reads. */
interface Announcement {
  readonly instance: string;
  readonly name: string;
  readonly generation: number;
}

class Generations {
  readonly #pool: Pool;
  readonly #announced = new Map<string, Announcement>();
  /** When the announcements are renewed; monotonic milliseconds. */
  #renewAt = 0;
  #look: { readonly at: number; readonly rows: Promise<readonly LiveShape[]> } | null = null;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** The shapes of a projection that are live. */
  async of(name: string): Promise<readonly LiveShape[]> {
    const now = performance.now();
    if (this.#look === null || now >= this.#look.at + sharedLookMs) this.#look = { at: now, rows: this.#read() };
    const { rows } = this.#look;
    try {
      return (await rows).filter((row) => row.name === name);
    } catch (error) {
      if (this.#look?.rows === rows) this.#look = null;
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

  /** The next look asks the database. */
  forget(): void {
    this.#look = null;
  }

  async #read(): Promise<readonly LiveShape[]> {
    const { rows } = await this.#pool.query<LiveShape>(
      'select name, shape, live from ops.projections where live is not null',
    );
    return rows;
  }
}

class Runner {
  readonly #options: RunOptions;
  readonly #generations: Generations;
  readonly #projection: Projection;
  readonly #former: FormerShapes;
  readonly #formerWriter: FormerWriter | null;
  readonly #instance = randomUUID();
  #generation: number | null = null;
  #consumer: Consumer | null = null;
  #waits: string | null = 'starting';
  /** Failed tries to make the shape. */
  #failures = 0;

  constructor(options: RunOptions, projection: Projection, generations: Generations) {
    this.#options = options;
    this.#generations = generations;
    this.#projection = projection;
    this.#former = new FormerShapes({ ...options, projection });
    const { name, former } = projection;
    const instance = randomUUID();
    const place = {
      live: async () => (await generations.of(name)).find(({ shape }) => shape === former?.shape)?.live ?? null,
      announce: (generation: number) => generations.announce({ instance, name: writersOf(name), generation }),
      leave: () => generations.leave(instance),
    };
    this.#formerWriter = former === null ? null : new FormerWriter(options, former, place);
  }

  get consumers(): readonly Consumer[] {
    return [this.#consumer, this.#formerWriter?.consumer].filter((one) => one !== null && one !== undefined);
  }

  status(): ProjectionStatus {
    const reasons = this.consumers.flatMap((one) =>
      [...one.status()].flatMap(([lane, { state, reason, restsMs }]) => {
        if (state === 'running') return [];
        const of = one === this.#consumer ? lane : `${one.group} ${lane}`;
        return [`${of} ${state}: ${reason}${restingOf(restsMs)}`];
      }),
    );
    const former = this.#formerWriter?.reason ?? null;
    const all = former === null ? reasons : [...reasons, former];
    return {
      name: this.#projection.name,
      generation: this.#generation,
      reason: this.#waits ?? (all.length === 0 ? null : all.join('; ')),
    };
  }

  async run(): Promise<void> {
    try {
      await Promise.all([this.#followAll(), this.#formerWriter?.run()]);
    } finally {
      await this.#generations.leave(this.#instance).catch(() => undefined);
    }
  }

  async #followAll(): Promise<void> {
    while (!this.#options.signal.aborted) await this.#follow();
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

  /** The live generation of this shape, announced as the one that this runner reads; null while there was none. */
  async #live(): Promise<number | null> {
    const { signal } = this.#options;
    const { name, shape } = this.#projection;
    try {
      const found = await this.#generations.of(name);
      const own = found.find((one) => one.shape === shape);
      if (own === undefined) {
        await this.#make();
        return null;
      }
      await this.#generations.announce({ instance: this.#instance, name, generation: own.live });
      this.#waits = null;
      await this.#former.look(found.filter((one) => one.shape !== shape));
      return own.live;
    } catch (error) {
      if (stopsLane(error)) throw error;
      await pause(announceMs, signal);
      // A running consumer waits for the database by itself.
      return this.#generation;
    }
  }

  /** The next look finds the shape, or a fault that passes: then this is tried again. */
  async #make(): Promise<void> {
    const { signal, logger } = this.#options;
    const { name, shape } = this.#projection;
    if (this.#generation !== null) return;
    this.#waits = `the tables of shape ${shape} are being made; those of former shapes go on`;
    try {
      const end = await makeShape(this.#options, this.#projection);
      this.#generations.forget();
      await end?.();
      this.#failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      this.#waits = `the tables of shape ${shape} are not made: ${reason}`;
      logger.warn({ projection: name, err: error }, this.#waits);
      await pause(backOff(this.#failures, retries), signal);
      this.#failures += 1;
    }
  }
}

/** Between two tries to make a shape, each of which begins anew, milliseconds. */
const retries = { firstMs: 5_000, maxMs: 600_000 };

/**
 * Runs projections, one consumer each, on the live generation; the runner follows when another generation goes live.
 */
export const runProjections = (options: RunOptions): RunningProjections => {
  const { names, of = projections } = options;
  const wanted = names.length === 0 ? of : names.map((name) => projectionOf(name, of));
  const generations = new Generations(options.pool);
  const runners = wanted.map((projection) => new Runner(options, projection, generations));
  const done = Promise.all(runners.map((runner) => runner.run())).then(() => undefined);
  done.catch(() => undefined);
  const status = (): readonly ProjectionStatus[] => runners.map((runner) => runner.status());
  return {
    done,
    status,
    consumers: () => runners.flatMap((runner) => runner.consumers),
    check: async () => {
      const ill = status().filter((one) => one.reason !== null);
      if (ill.length > 0) throw new Error(ill.map(({ name, reason }) => `${name}: ${reason}`).join('; '));
      return null;
    },
  };
};
