/** The relay's checkpoint as one row, with its lease on the database's clock. An operational table: it is backed up. */
import type pg from 'pg';

export interface RelayCheckpointOptions {
  readonly pool: pg.Pool;
  /** Name of the relay: one per store and log. Default `relay`. */
  readonly name?: string;
}

interface Last {
  readonly position: bigint;
  readonly eventId: string;
}

export class PostgresRelayCheckpoint {
  readonly #pool: pg.Pool;
  readonly #name: string;

  constructor(options: RelayCheckpointOptions) {
    this.#pool = options.pool;
    this.#name = options.name ?? 'relay';
  }

  async acquire(holder: string, ttlMs: number): Promise<{ epoch: bigint; last: Last | null } | null> {
    const { rows } = await this.#pool.query<{ epoch: string; position: string | null; event_id: string }>(
      `insert into ops.relay_checkpoints as last (name, epoch, holder, until)
       values ($1, 1, $2, clock_timestamp() + $3 * interval '1 ms')
       on conflict (name) do update set epoch = last.epoch + 1, holder = excluded.holder, until = excluded.until
       where last.until < clock_timestamp()
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
      `update ops.relay_checkpoints set until = '-infinity', holder = null where name = $1 and epoch = $2`,
      [this.#name, epoch.toString()],
    );
  }

  async #update(set: string, epoch: bigint, ...values: readonly (number | string | null)[]): Promise<boolean> {
    const statement = `update ops.relay_checkpoints set ${set} where name = $1 and epoch = $2`;
    const { rowCount } = await this.#pool.query(statement, [this.#name, epoch.toString(), ...values]);
    return rowCount === 1;
  }
}
