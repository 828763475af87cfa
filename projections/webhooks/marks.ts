import type { Pool } from 'pg';

/**
 * Where in the store a time lies. No store can be asked for that, and to read one from the start for every replay would
 * take minutes: so an event's time and position are written down now and then while the log goes by.
 */

const everyMs = 60_000;
/** No event lies this much later in the store than its own time says: clocks of processes differ, appends are repeated. */
export const disorderMs = 15 * 60_000;

export class Marks {
  readonly #pool: Pool;
  #due = Number.NEGATIVE_INFINITY;
  #seen: { readonly position: bigint; readonly at: string } | null = null;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Whether one is due: only then is an event's time worth looking at. */
  get due(): boolean {
    return this.#seen === null && performance.now() >= this.#due;
  }

  see(position: bigint, at: string): void {
    this.#seen = { position, at };
  }

  /** Writes the one that was seen, if there is one. It is no loss when that fails. */
  async save(): Promise<void> {
    const seen = this.#seen;
    if (seen === null) return;
    this.#seen = null;
    this.#due = performance.now() + everyMs;
    await this.#pool
      .query('insert into ops.webhook_marks (position, at) values ($1, $2) on conflict do nothing', [
        seen.position,
        seen.at,
      ])
      .catch(() => undefined);
  }
}

/** Everything that happened at or after the instant (milliseconds) lies behind this commit position; null: from the start. */
export const positionBefore = async (pool: Pick<Pool, 'query'>, instant: number): Promise<bigint | null> => {
  const { rows } = await pool.query<{ position: string }>(
    'select position::text from ops.webhook_marks where at < $1 order by at desc, position desc limit 1',
    [new Date(instant - disorderMs)],
  );
  return rows[0] === undefined ? null : BigInt(rows[0].position);
};
