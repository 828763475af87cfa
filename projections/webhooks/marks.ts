import type { Pool } from 'pg';

/**
 * Marks map instants to positions in the store. No store answers that question, and reading one from the start for
 * every replay would take minutes: so the dispatcher records a position and the time now and then while the log goes by.
 * The time is that of writing, not the event's own: a fan-out that a crash held up appends events with the time of their
 * post, and a mark with such a time would hide every event before it from replays.
 */

const everyMs = 60_000;
/** No event's own time is this much later than its append: clocks of processes differ. */
export const disorderMs = 15 * 60_000;

export class Marks {
  readonly #pool: Pool;
  #due = Number.NEGATIVE_INFINITY;
  #seen: bigint | null = null;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  get due(): boolean {
    return this.#seen === null && performance.now() >= this.#due;
  }

  see(position: bigint): void {
    this.#seen = position;
  }

  /** Writes the last candidate, if there is one. A failed write is no loss. */
  async save(): Promise<void> {
    const seen = this.#seen;
    if (seen === null) return;
    this.#seen = null;
    this.#due = performance.now() + everyMs;
    await this.#pool
      .query('insert into ops.webhook_marks (position, at) values ($1, clock_timestamp()) on conflict do nothing', [
        seen,
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
