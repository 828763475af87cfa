import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Pool } from 'pg';
import type { Clock } from '#runtime/postgres/database-clock.ts';

/**
 * Rows on database time: each gives one worker one subject for a while. A lease only avoids duplicate work. A stale
 * worker is harmless because the revision at which it appends has passed. The rows of a dead holder lapse.
 */

const acquireSql = `
insert into ops.work_leases (kind, id, holder, epoch, until)
select $1, id, $2, nextval('ops.work_lease_epochs'), now() + $3 * interval '1 millisecond'
from unnest($4::text[]) as id order by id
on conflict (kind, id) do update
  set holder = excluded.holder, epoch = excluded.epoch, until = excluded.until, not_before = null
  where work_leases.until <= now() and (work_leases.not_before is null or work_leases.not_before <= now())
returning id, epoch::text`;

/** Every statement here locks rows in the order of their ids, so that two statements never deadlock. */
const renewSql = `
with mine as (
  select l.id from ops.work_leases l join unnest($2::text[], $3::bigint[]) as held (id, epoch) using (id, epoch)
  where l.kind = $1 order by l.id for update of l
)
update ops.work_leases l set until = now() + $4 * interval '1 millisecond'
from mine where l.kind = $1 and l.id = mine.id returning l.epoch::text`;

const releaseSql = `
with gone as (
  select l.id, left_at.wait from ops.work_leases l
  join unnest($2::text[], $3::bigint[], $4::float8[]) as left_at (id, epoch, wait) using (id, epoch)
  where l.kind = $1 order by l.id for update of l
), parked as (
  update ops.work_leases l set until = now(), not_before = now() + gone.wait * interval '1 millisecond'
  from gone where gone.wait is not null and l.kind = $1 and l.id = gone.id
)
delete from ops.work_leases l using gone where gone.wait is null and l.kind = $1 and l.id = gone.id`;

/**
 * Ends the rest of work whose state a person changed: a target with an unknown outcome may rest for an hour, which a retry
 * must not wait out. Who holds a lease keeps it. If we die before it, the work waits out its rest.
 */
export const endRest = async (pool: Pick<Pool, 'query'>, kind: string, ids: readonly string[]): Promise<void> => {
  const sql =
    'update ops.work_leases set not_before = null where kind = $1 and id = any($2::text[]) and until <= now() and not_before is not null';
  await pool.query(sql, [kind, ids]);
};

/** The row `$3` places after an id; no row: fewer remain. */
const cleanToSql = `
select id from ops.work_leases where kind >= $1 and (kind, id) > ($1, $2) and kind <= $1
order by kind, id offset $3 limit 1`;

const cleanSql = `
delete from ops.work_leases l using (
  select id from ops.work_leases
  where kind = $1 and id > $2 and ($3::text is null or id <= $3) and until < now() - interval '1 hour'
    and (not_before is null or not_before < now() - interval '1 hour')
  order by id for update skip locked
) old where l.kind = $1 and l.id = old.id`;

/** A cleaning reads this many rows and the next one continues behind them, because a million rows may rest. */
const defaultCleaning = { rows: 10_000, everyMs: 60_000 };
/** Milliseconds for which releases wait to share one statement. */
const gatherMs = 10;

export interface Lease {
  readonly id: string;
  readonly epoch: bigint;
  /** Aborts when the lease is lost: it was not renewed in time, or another worker has it. */
  readonly signal: AbortSignal;
  /**
   * True only while no other worker can have the lease, even right after the machine slept. Check it right before an
   * effect.
   */
  isHeld(): boolean;
  /** Gives the lease back; a second call does nothing. For `notBeforeMs` milliseconds no worker may take it. */
  release(options?: { readonly notBeforeMs?: number }): void;
}

interface LeaseRecord {
  readonly id: string;
  readonly epoch: bigint;
  readonly lost: AbortController;
  /** Monotonic milliseconds, counted from before the statement was sent: never later than the row's `until`. */
  deadline: number;
}

export interface LeasesOptions {
  readonly pool: Pool;
  readonly kind: string;
  /** Milliseconds. A lease is renewed every third of this time. */
  readonly ttlMs: number;
  /** While the clock has a fault, no lease is taken and held leases stay. Default: no fault. */
  readonly clock?: Pick<Clock, 'fault'>;
  /** Rows read by one cleaning, and the time between two cleanings. Default 10,000 a minute. */
  readonly cleaning?: { readonly rows: number; readonly everyMs: number };
  /** Called when a renewal fails; the leases hold until they lapse. */
  readonly onError?: (error: unknown) => void;
}

export class LeaseLost extends Error {
  constructor(id: string) {
    super(`the lease of ${id} was lost`);
    this.name = 'LeaseLost';
  }
}

export class Leases {
  readonly holder = `${hostname()}:${process.pid}:${randomUUID()}`;
  readonly #options: LeasesOptions;
  readonly #records = new Map<bigint, LeaseRecord>();
  #leaving: { readonly record: LeaseRecord; readonly waitMs: number | null }[] = [];
  #flushing: Promise<void> = Promise.resolve();
  #gathering: NodeJS.Timeout | null = null;
  #renewing: NodeJS.Timeout | null = null;
  #watching: NodeJS.Timeout | null = null;
  #renewal: Promise<void> | null = null;
  #cleanedAt = Number.NEGATIVE_INFINITY;
  /** Id from which the next cleaning continues. */
  #cleanedTo = '';

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#records.size;
  }

  /** Takes the free leases among these ids in one statement; the other ids are held or rest. */
  async acquire(ids: readonly string[]): Promise<readonly Lease[]> {
    const { kind, ttlMs, clock } = this.#options;
    if (ids.length === 0 || (clock !== undefined && clock.fault() !== null)) return [];
    const deadline = performance.now() + ttlMs;
    const rows = await this.#query<{ id: string; epoch: string }>(acquireSql, [
      kind,
      this.holder,
      ttlMs,
      [...new Set(ids)],
    ]);
    this.#watch();
    return rows.map(({ id, epoch }) => {
      const record: LeaseRecord = { id, epoch: BigInt(epoch), lost: new AbortController(), deadline };
      this.#records.set(record.epoch, record);
      return this.#leaseOf(record);
    });
  }

  /** Gives back all leases and stops; the signal of each lease aborts. */
  async close(): Promise<void> {
    for (const record of [...this.#records.values()]) {
      this.#leave(record, null);
      record.lost.abort(new LeaseLost(record.id));
    }
    if (this.#renewing !== null) clearInterval(this.#renewing);
    if (this.#watching !== null) clearInterval(this.#watching);
    this.#renewing = null;
    this.#watching = null;
    await this.#renewal;
    await this.flush();
  }

  /** Writes the releases gathered so far. */
  async flush(): Promise<void> {
    if (this.#gathering !== null) clearTimeout(this.#gathering);
    this.#gathering = null;
    const leaving = this.#leaving;
    this.#leaving = [];
    if (leaving.length > 0) this.#flushing = this.#flushing.then(() => this.#write(leaving));
    await this.#flushing;
  }

  #leaseOf(record: LeaseRecord): Lease {
    return {
      id: record.id,
      epoch: record.epoch,
      signal: record.lost.signal,
      isHeld: () => this.#records.has(record.epoch) && performance.now() < record.deadline,
      release: ({ notBeforeMs } = {}) => this.#leave(record, notBeforeMs ?? null),
    };
  }

  #leave(record: LeaseRecord, waitMs: number | null): void {
    if (!this.#records.delete(record.epoch)) return;
    this.#leaving.push({ record, waitMs });
    this.#gathering ??= setTimeout(() => void this.flush(), gatherMs);
  }

  async #write(leaving: readonly { readonly record: LeaseRecord; readonly waitMs: number | null }[]): Promise<void> {
    try {
      await this.#query(releaseSql, [
        this.#options.kind,
        leaving.map(({ record }) => record.id),
        leaving.map(({ record }) => record.epoch),
        leaving.map(({ waitMs }) => waitMs),
      ]);
    } catch (error) {
      // The rows lapse by themselves.
      this.#options.onError?.(error);
    }
  }

  #watch(): void {
    const { ttlMs } = this.#options;
    this.#renewing ??= setInterval(() => this.#renew(), ttlMs / 3);
    this.#watching ??= setInterval(() => this.#dropLapsed(), Math.max(10, ttlMs / 50));
  }

  #dropLapsed(): void {
    const now = performance.now();
    for (const record of this.#records.values()) if (now >= record.deadline) this.#lose(record);
  }

  #lose(record: LeaseRecord): void {
    if (this.#records.delete(record.epoch)) record.lost.abort(new LeaseLost(record.id));
  }

  #renew(): void {
    if (this.#renewal !== null) return;
    this.#renewal = this.#renewAll()
      .catch((error: unknown) => this.#options.onError?.(error))
      .finally(() => {
        this.#renewal = null;
      });
  }

  async #renewAll(): Promise<void> {
    const { kind, ttlMs, cleaning = defaultCleaning } = this.#options;
    this.#dropLapsed();
    const all = [...this.#records.values()];
    if (all.length > 0) {
      const deadline = performance.now() + ttlMs;
      const rows = await this.#query<{ epoch: string }>(renewSql, [
        kind,
        all.map((record) => record.id),
        all.map((record) => record.epoch),
        ttlMs,
      ]);
      const renewed = new Set(rows.map(({ epoch }) => BigInt(epoch)));
      for (const record of all) {
        if (renewed.has(record.epoch)) record.deadline = deadline;
        else this.#lose(record);
      }
    }
    if (performance.now() - this.#cleanedAt < cleaning.everyMs) return;
    this.#cleanedAt = performance.now();
    const [last] = await this.#query<{ id: string }>(cleanToSql, [kind, this.#cleanedTo, cleaning.rows - 1]);
    await this.#query(cleanSql, [kind, this.#cleanedTo, last?.id ?? null]);
    this.#cleanedTo = last?.id ?? '';
  }

  async #query<Row extends object>(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    // A connection that hangs must not delay the next renewal. pg accepts this limit per query, but its types lack it.
    const limited = { text, values: [...values], query_timeout: Math.max(250, this.#options.ttlMs / 3) };
    return (await this.#options.pool.query(limited)).rows as Row[];
  }
}
