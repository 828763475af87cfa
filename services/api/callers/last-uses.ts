import type { Pool } from 'pg';
import type { Principal } from '../call/operation.ts';

/** When each key and app was last used, to within a minute: noted in memory, written once for many calls. */

const flushMs = 3_000;
/** Credentials that wait to be written; the uses of further ones are left out until the next time. */
const maxWaiting = 20_000;

export class LastUses {
  readonly #pool: Pool;
  readonly #clock: () => number;
  #waiting = new Map<string, number>();

  /** @param clock milliseconds since the epoch */
  constructor(pool: Pool, clock: () => number) {
    this.#pool = pool;
    this.#clock = clock;
  }

  note({ kind, id }: Principal): void {
    if (kind === 'session') return;
    if (this.#waiting.size === 0) setTimeout(() => void this.flush().catch(() => undefined), flushMs).unref();
    if (this.#waiting.size < maxWaiting || this.#waiting.has(id)) this.#waiting.set(id, this.#clock());
  }

  /** What cannot be written is forgotten: the next use says more than the last one. */
  async flush(): Promise<void> {
    const uses = [...this.#waiting].sort(([one], [other]) => (one < other ? -1 : 1));
    this.#waiting = new Map();
    if (uses.length === 0) return;
    await this.#pool.query(
      `insert into auth.last_uses as known (credential_id, used_at)
       select * from unnest($1::uuid[], $2::timestamptz[])
       on conflict (credential_id) do update set used_at = greatest(known.used_at, excluded.used_at)`,
      [uses.map(([id]) => id), uses.map(([, at]) => new Date(at).toISOString())],
    );
  }
}

/** ISO 8601 instants by credential; those that were never used are left out. */
export const lastUsesOf = async (pool: Pool, ids: readonly string[]): Promise<ReadonlyMap<string, string>> => {
  if (ids.length === 0) return new Map();
  const { rows } = await pool.query<{ id: string; used_at: Date }>(
    'select credential_id::text as id, used_at from auth.last_uses where credential_id = any($1::uuid[])',
    [ids],
  );
  return new Map(rows.map(({ id, used_at }) => [id, used_at.toISOString()]));
};
