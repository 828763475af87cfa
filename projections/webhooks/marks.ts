import type { Pool } from 'pg';

/**
 * Marks map instants to positions in the store. No store answers that question, and reading one from the start for
 * every replay would take minutes: so the dispatcher records an event's time and position now and then while the log
 * goes by.
 */

const everyMs = 60_000;
/**
 * No event lies this much later in the store than its own time says: clocks of processes differ, appends are repeated.
 */
export const disorderMs = 15 * 60_000;

export class Marks {
  readonly #pool: Pool;
  #due = Number.NEGATIVE_INFINITY;
  #seen: { readonly position: bigint; readonly at: string } | null = null;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Whether a mark is due: only then is an event's time parsed. */
  get due(): boolean {
    return this.#seen === null && performance.now() >= this.#due;
  }

  see(position: bigint, at: string): void {
    this.#seen = { position, at };
  }

  /** Writes the last candidate, if there is one. A failed write is no loss. */
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

/** A commit position before every event that occurred at or after the instant (milliseconds); null: from the start. */
export const positionBefore = async (pool: Pick<Pool, 'query'>, instant: number): Promise<bigint | null> => {
  const { rows } = await pool.query<{ position: string }>(
    'select position::text from ops.webhook_marks where at < $1 order by at desc, position desc limit 1',
    [new Date(instant - disorderMs)],
  );
  return rows[0] === undefined ? null : BigInt(rows[0].position);
};
