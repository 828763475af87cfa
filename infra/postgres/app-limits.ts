/**
 * The limits of operators' apps in Postgres, for all processes. A refusal is one row of an app and what rests, a month
 * one row. Rests are read at most once a second by each process; reads are counted by one statement for each call of the
 * network, which may ask for a hundred posts.
 */
import type pg from 'pg';
import { type AppLimits, type AppRefusal, type AppRestScope, monthOf } from '#contracts/ports/app-limits.ts';
import { tablesLock, withTableLock } from '#contracts/ports/migration.ts';
import type { Failure } from '#schemas/target.ts';
import { withDeadline } from '../with-deadline.ts';

type Rests = Readonly<Partial<Record<AppRestScope, AppRefusal>>>;

interface KnownRests {
  /** Monotonic milliseconds. */
  readonly readAt: number;
  readonly rests: Rests;
}

const freshMs = 1_000;
/** Milliseconds that a call of a network waits for the rests, or for a refusal to be stored. */
const answerMs = 2_000;

const later = (one: AppRefusal | undefined, other: AppRefusal | undefined): AppRefusal | undefined =>
  one === undefined || (other !== undefined && other.until > one.until) ? other : one;

export class PostgresAppLimits implements AppLimits {
  readonly #pool: pg.Pool;
  /** By app: those of an operator, so a few. */
  readonly #known = new Map<string, KnownRests>();
  readonly #reading = new Map<string, Promise<void>>();

  constructor({ pool }: { readonly pool: pg.Pool }) {
    this.#pool = pool;
  }

  migrate(): Promise<void> {
    return withTableLock(this.#pool, tablesLock, async (tx) => {
      await tx.query(`
        create schema if not exists ops;
        create table if not exists ops.app_rests (
          app text not null,
          -- all or reads
          what text not null,
          until timestamptz not null,
          -- What the network said, as a failure of a target.
          failure jsonb not null,
          primary key (app, what)
        );
        create table if not exists ops.app_reads (
          app text not null,
          -- YYYY-MM in UTC
          month text not null,
          used bigint not null check (used >= 0),
          primary key (app, month)
        )`);
    });
  }

  async restOf(app: string, isRead: boolean, now: number): Promise<AppRefusal | null> {
    const known = this.#known.get(app);
    if (known === undefined || performance.now() - known.readAt > freshMs) {
      // Without an answer the network itself refuses again: what is known does for now.
      await withDeadline(answerMs, this.#read(app)).catch(() => undefined);
    }
    const { all, reads } = this.#known.get(app)?.rests ?? {};
    const rests = isRead ? [all, reads] : [all];
    return rests.find((rest) => rest !== undefined && rest.until > now) ?? null;
  }

  #read(app: string): Promise<void> {
    const reading = this.#reading.get(app) ?? this.#readNow(app).finally(() => this.#reading.delete(app));
    this.#reading.set(app, reading);
    return reading;
  }

  async #readNow(app: string): Promise<void> {
    const { rows } = await this.#pool.query<{ what: AppRestScope; until: Date; failure: Failure }>(
      'select what, until, failure from ops.app_rests where app = $1',
      [app],
    );
    for (const { what, until, failure } of rows) this.#note(app, what, { until: until.getTime(), failure });
    this.#known.set(app, { readAt: performance.now(), rests: this.#known.get(app)?.rests ?? {} });
  }

  #note(app: string, what: AppRestScope, refusal: AppRefusal): void {
    const { rests, readAt } = this.#known.get(app) ?? { rests: {}, readAt: Number.NEGATIVE_INFINITY };
    const kept = later(rests[what], refusal);
    if (kept !== undefined) this.#known.set(app, { readAt, rests: { ...rests, [what]: kept } });
  }

  /**
   * This process knows the refusal at once. If it dies before the row is written, the next call of another process is
   * refused again, and writes it.
   */
  async rest(app: string, what: AppRestScope, refusal: AppRefusal): Promise<void> {
    this.#note(app, what, refusal);
    const stored = this.#pool.query(
      `insert into ops.app_rests as known (app, what, until, failure) values ($1, $2, $3, $4)
       on conflict (app, what) do update set until = excluded.until, failure = excluded.failure
       where known.until < excluded.until`,
      [app, what, new Date(refusal.until), JSON.stringify(refusal.failure)],
    );
    await withDeadline(answerMs, stored).catch(() => undefined);
  }

  async take(app: string, reads: number, monthly: number, now: number): Promise<boolean> {
    if (reads > monthly) return false;
    const { rowCount } = await this.#pool.query(
      `insert into ops.app_reads as month (app, month, used) values ($1, $2, $3)
       on conflict (app, month) do update set used = month.used + excluded.used
       where month.used + excluded.used <= $4`,
      [app, monthOf(now), reads, monthly],
    );
    return rowCount === 1;
  }

  async giveBack(app: string, reads: number, now: number): Promise<void> {
    const given = this.#pool.query(
      'update ops.app_reads set used = greatest(used - $3, 0) where app = $1 and month = $2',
      [app, monthOf(now), reads],
    );
    await withDeadline(answerMs, given).catch(() => undefined);
  }
}
