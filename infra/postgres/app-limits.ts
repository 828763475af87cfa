/**
 * The limits of operators' apps in Postgres, for all processes. A refusal is one row of an app and what rests, a month
 * one row, and one of each workspace that reads. Rests are read at most once a second by each process; reads are counted
 * by one statement for each call of the network, which may ask for a hundred posts.
 */
import type pg from 'pg';
import { within } from '#contracts/base/pause.ts';
import {
  type AppLimits,
  type AppReader,
  type AppRefusal,
  type AppRestScope,
  monthOf,
  openReads,
  type ReadsAnswer,
} from '#contracts/ports/app-limits.ts';
import type { Failure } from '#schemas/target.ts';

type Rests = Readonly<Partial<Record<AppRestScope, AppRefusal>>>;

interface KnownRests {
  /** Monotonic milliseconds. */
  readonly readAt: number;
  readonly rests: Rests;
}

const dayMs = 86_400_000;
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

  async restOf(app: string, isRead: boolean, now: number): Promise<AppRefusal | null> {
    const known = this.#known.get(app);
    if (known === undefined || performance.now() - known.readAt > freshMs) {
      // Without an answer the network itself refuses again: what is known does for now.
      await within(answerMs, this.#read(app)).catch(() => undefined);
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
    await within(answerMs, stored).catch(() => undefined);
  }

  async take({ app, workspaceId }: AppReader, reads: number, monthly: number, now: number): Promise<ReadsAnswer> {
    // The clocks of two processes may be in two months at once.
    const kept = monthOf(now - dayMs);
    const { rows } = await this.#pool.query<{ answer: ReadsAnswer }>(
      'select ops.take_app_reads($1, $2, $3, $4, $5, $6, $7) as answer',
      [app, monthOf(now), kept, workspaceId, reads, monthly, openReads(monthly, now)],
    );
    return rows[0]?.answer ?? 'month_spent';
  }

  async giveBack({ app, workspaceId }: AppReader, reads: number, now: number): Promise<void> {
    // In the order in which a take locks them.
    const given = this.#pool.query(
      `with month as (
         update ops.app_reads set used = greatest(used - $4, 0) where app = $1 and month = $2 returning app, month
       )
       update ops.app_read_shares as share set used = greatest(share.used - $4, 0) from month
       where share.app = month.app and share.month = month.month and share.workspace_id = $3`,
      [app, monthOf(now), workspaceId, reads],
    );
    await within(answerMs, given).catch(() => undefined);
  }
}
