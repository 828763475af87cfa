import type { Pool, PoolClient } from 'pg';
import { backOff } from '#contracts/base/back-off.ts';
import { pause } from '#contracts/base/pause.ts';
import type { Consumer } from '#runtime/consuming/consume.ts';
import { forgetParked } from '#runtime/consuming/parking.ts';
import { fence } from '#runtime/consuming/positions.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { groupOf, type Projection } from '../index.ts';
import { viewOf } from '../shapes.ts';
import { type ProjectOptions, projectUnannounced } from './project.ts';
import { tableOf } from './tables.ts';

/**
 * The shapes of another build: this one writes the former shape for as long as it has tables, and the tables of any go
 * when no process reads them any more.
 */

interface OtherShape {
  readonly shape: number;
  readonly live: number;
}

interface FormerShapesOptions {
  readonly pool: Pool;
  readonly projection: Projection;
  readonly logger: Logger;
  /** Milliseconds for which no process may announce the shape. Default: two minutes. */
  readonly dropAfterMs?: number;
}

/** Longer than any reader rests between two announcements: after an outage each has the time to renew its own. */
const defaultDropMs = 120_000;
const longestLookMs = 5_000;

export class FormerShapes {
  readonly #options: FormerShapesOptions;
  readonly #dropAfterMs: number;
  readonly #lookMs: number;
  /** When to look next; monotonic milliseconds. */
  #lookAt = 0;
  /** Shapes that nobody announced, since when. */
  readonly #unread = new Map<number, number>();

  constructor(options: FormerShapesOptions) {
    this.#options = options;
    this.#dropAfterMs = options.dropAfterMs ?? defaultDropMs;
    this.#lookMs = Math.min(longestLookMs, this.#dropAfterMs / 4);
  }

  /**
   * Drops a shape that no process has announced for a while. While this process or the database stood still nobody could
   * announce anything, so a late look begins to count anew.
   */
  async look(others: readonly OtherShape[]): Promise<void> {
    const now = performance.now();
    if (others.length === 0 || now < this.#lookAt) return;
    if (now > this.#lookAt + Math.max(longestLookMs, this.#lookMs)) this.#unread.clear();
    this.#lookAt = now + this.#lookMs;
    const { pool, projection, logger } = this.#options;
    const { name } = projection;
    for (const { shape, live } of others) {
      const isUnread = !(await isRead(pool, name, shape, live));
      const since = this.#unread.get(shape) ?? now;
      this.#unread.delete(shape);
      if (!isUnread) continue;
      if (now - since < this.#dropAfterMs) this.#unread.set(shape, since);
      else if (await dropShape(pool, projection, shape))
        logger.info({ projection: name, shape }, 'dropped the tables of a shape that no process reads');
    }
  }
}

const isRead = async (db: Pool | PoolClient, name: string, shape: number, live: number): Promise<boolean> => {
  const { rows } = await db.query<{ read: boolean }>(
    `select exists (select from ops.projection_readers where name = $1 and generation = $3 and until > now())
       or exists (select from ops.shape_readers where (shapes ->> $1)::int4 = $2 and until > now()) as read`,
    [name, shape, live],
  );
  return rows[0]?.read === true;
};

/**
 * Drops views and tables of a shape in one transaction, so that a process that dies in it has dropped nothing. The row is
 * locked before the question who reads it: a process that announces itself meanwhile finds the shape gone, and makes it.
 * @returns false where a process reads it, or where it is gone
 */
const dropShape = async (pool: Pool, { name }: Projection, shape: number): Promise<boolean> => {
  let dropped = false;
  await withMigrationLock(pool, async (tx) => {
    dropped = false;
    const { rows } = await tx.query<{ live: number; models: readonly string[] }>(
      `select live, models from ops.projections where name = $1 and shape = $2 and live is not null for update`,
      [name, shape],
    );
    const [row] = rows;
    if (row === undefined || (await isRead(tx, name, shape, row.live))) return;
    await fence(tx, groupOf(name, row.live));
    await tx.query('update ops.projections set live = null where name = $1 and shape = $2', [name, shape]);
    for (const model of row.models) await tx.query(`drop view if exists ${viewOf(model, shape)}`);
    faultPoint('shape:before-drop');
    for (const model of row.models) await tx.query(`drop table if exists ${tableOf({ name: model }, row.live)}`);
    await forgetParked(tx, groupOf(name, row.live));
    dropped = true;
  });
  return dropped;
};

/** Between two tries to write a former shape, milliseconds. */
const retries = { firstMs: 1_000, maxMs: 60_000 };
const followMs = 1_000;

/** What the database knows of a former shape. */
interface FormerPlace {
  /** The generation that is live; null: it has no tables. */
  live(): Promise<number | null>;
  /** Says that this process writes the generation. */
  announce(generation: number): Promise<void>;
  leave(): Promise<void>;
}

/**
 * The name under which projections announce that they write the shape of a former build: not that of its own, because the
 * tables are there for processes of that build alone.
 */
export const writersOf = (name: string): string => `former ${name}`;

/**
 * Writes the former shape as one more member of its consumer group, beside the projections of the former build or alone:
 * a lane is one member's, and its position moves with its rows, so the group loses and doubles nothing, whoever leaves it
 * in whatever way. It passes events that the former build cannot read, at which the lanes of that build rest.
 */
export class FormerWriter {
  readonly #options: ProjectOptions;
  readonly #former: Projection;
  readonly #place: FormerPlace;
  #consumer: Consumer | null = null;
  #reason: string | null = null;

  constructor(options: ProjectOptions, former: Projection, place: FormerPlace) {
    this.#options = options;
    this.#former = former;
    this.#place = place;
  }

  get consumer(): Consumer | null {
    return this.#consumer;
  }

  /** Why the former shape is not written; null where it is, or has no tables. */
  get reason(): string | null {
    return this.#reason;
  }

  /** A former shape that cannot be written stops nothing of this build: it is said, and tried again. */
  async run(): Promise<void> {
    const { signal, logger } = this.#options;
    const { name, shape } = this.#former;
    for (let failures = 0; !signal.aborted; ) {
      try {
        const generation = await this.#place.live().catch(() => null);
        if (generation !== null) await this.#write(generation);
        else await pause(followMs, signal);
        this.#reason = null;
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        this.#reason = `shape ${shape} is not written: ${error instanceof Error ? error.message : String(error)}`;
        logger.warn({ projection: name, err: error }, this.#reason);
        await pause(backOff(failures, retries), signal);
        failures += 1;
      }
    }
  }

  /** Until another generation is live, or none. */
  async #write(generation: number): Promise<void> {
    const { signal, logger } = this.#options;
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    this.#consumer = projectUnannounced(this.#former, generation, { ...this.#options, signal: either });
    const { name, shape } = this.#former;
    logger.info({ projection: name, shape, generation }, 'projecting for processes of the former release');
    const ended = this.#consumer.done.finally(() => over.abort());
    ended.catch(() => undefined);
    const { live, announce, leave } = this.#place;
    while (!either.aborted) {
      // A consumer that runs waits for the database by itself.
      await announce(generation).catch(() => undefined);
      await pause(followMs, either);
      if (!either.aborted) this.#reason = null;
      if ((await live().catch(() => generation)) !== generation) over.abort();
    }
    await ended.finally(async () => {
      this.#consumer = null;
      await leave().catch(() => undefined);
    });
  }
}
