/** The relay's checkpoint as one row, with its lease on the database's clock. An operational table: it is backed up. */
import type pg from 'pg';
import { tablesLock, withTableLock } from '#contracts/base/migration.ts';
import { checkSchemaName } from './pool.ts';

export interface RelayCheckpointOptions {
  readonly pool: pg.Pool;
  /** Default `public`. */
  readonly schema?: string;
  /** Name of the relay: one per store and log. Default `relay`. */
  readonly name?: string;
}

interface Last {
  readonly position: bigint;
  readonly eventId: string;
}

export class PostgresRelayCheckpoint {
  readonly #pool: pg.Pool;
  readonly #table: string;
  readonly #schema: string;
  readonly #name: string;

  constructor(options: RelayCheckpointOptions) {
    this.#pool = options.pool;
    this.#schema = checkSchemaName(options.schema ?? 'public');
    this.#table = `${this.#schema}.relay_checkpoints`;
    this.#name = options.name ?? 'relay';
  }

  /** Creates the table and the row; call it once, before the other methods. */
  async prepare(): Promise<void> {
    await withTableLock(this.#pool, tablesLock, async (tx) => {
      await tx.query(`create schema if not exists ${this.#schema}`);
      await tx.query(`create table if not exists ${this.#table} (
        name text primary key,
        position bigint,
        epoch bigint not null default 0,
        holder text,
        until timestamptz not null default '-infinity',
        saved_at timestamptz,
        event_id uuid
      )`);
      await tx.query(`insert into ${this.#table} (name) values ($1) on conflict do nothing`, [this.#name]);
    });
  }

  async acquire(holder: string, ttlMs: number): Promise<{ epoch: bigint; last: Last | null } | null> {
    const { rows } = await this.#pool.query<{ epoch: string; position: string | null; event_id: string }>(
      `update ${this.#table} set epoch = epoch + 1, holder = $2, until = clock_timestamp() + $3 * interval '1 ms'
       where name = $1 and until < clock_timestamp()
       returning epoch::text, position::text, event_id::text`,
      [this.#name, holder, ttlMs],
    );
    const row = rows[0];
    if (row === undefined) return null;
    const last = row.position === null ? null : { position: BigInt(row.position), eventId: row.event_id };
    return { epoch: BigInt(row.epoch), last };
  }

  /** An expired lease that no other relay took is still ours: the epoch proves it. */
  async renew(epoch: bigint, ttlMs: number): Promise<boolean> {
    return this.#update(`until = clock_timestamp() + $3 * interval '1 ms'`, epoch, ttlMs);
  }

  async save({ position, eventId }: Last, epoch: bigint): Promise<boolean> {
    const set = 'position = $3, saved_at = clock_timestamp(), event_id = $4';
    return this.#update(set, epoch, position.toString(), eventId);
  }

  async release(epoch: bigint): Promise<void> {
    await this.#pool.query(
      `update ${this.#table} set until = '-infinity', holder = null where name = $1 and epoch = $2`,
      [this.#name, epoch.toString()],
    );
  }

  async #update(set: string, epoch: bigint, ...values: readonly (number | string | null)[]): Promise<boolean> {
    const statement = `update ${this.#table} set ${set} where name = $1 and epoch = $2`;
    const { rowCount } = await this.#pool.query(statement, [this.#name, epoch.toString(), ...values]);
    return rowCount === 1;
  }
}
