/**
 * The limits of operators' apps in Postgres, for all processes. A refusal is one row of an app and what rests; a budget one
 * row for each window, and one for each workspace or account that took of it. Rests are read at most once a second by each
 * process; what is taken is counted by one statement for each call of the network, which may ask for a hundred posts.
 */
import type pg from 'pg';
import { within } from '#contracts/base/pause.ts';
import {
  type AppBudget,
  type AppCaller,
  type AppLimits,
  type AppRefusal,
  type AppRestScope,
  type BudgetAnswer,
  openShare,
} from '#contracts/ports/app-limits.ts';
import type { Failure } from '#schemas/target.ts';

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

  async take({ app, workspaceId }: AppCaller, amount: number, budget: AppBudget, now: number): Promise<BudgetAnswer> {
    const { name, begins, limit, isShared } = budget;
    const { rows } = await this.#pool.query<{ answer: BudgetAnswer }>(
      'select ops.take_app_budget($1, $2, $3, $4, $5, $6, $7) as answer',
      [app, name, new Date(begins), workspaceId, amount, limit, isShared === true ? openShare(budget, now) : null],
    );
    return rows[0]?.answer ?? 'spent';
  }

  async admit(app: string, member: string, { name, begins, limit }: AppBudget): Promise<'taken' | 'spent'> {
    const { rows } = await this.#pool.query<{ answer: 'taken' | 'spent' }>(
      'select ops.admit_to_app_budget($1, $2, $3, $4, $5) as answer',
      [app, name, new Date(begins), member, limit],
    );
    return rows[0]?.answer ?? 'spent';
  }

  async giveBack({ app, workspaceId }: AppCaller, amount: number, { name, begins }: AppBudget): Promise<void> {
    // In the order in which a take locks them.
    const given = this.#pool.query(
      `with of_window as (
         update ops.app_budgets set used = greatest(used - $4, 0)
         where app = $1 and budget = $2 and begins = $3 returning app, budget, begins
       )
       update ops.app_budget_shares as share set used = greatest(share.used - $4, 0) from of_window
       where share.app = of_window.app and share.budget = of_window.budget and share.begins = of_window.begins
         and share.workspace_id = $5`,
      [app, name, new Date(begins), amount, workspaceId],
    );
    await within(answerMs, given).catch(() => undefined);
  }

  async exhaust(app: string, { name, begins, limit }: AppBudget): Promise<void> {
    const stored = this.#pool.query(
      `insert into ops.app_budgets as of_window (app, budget, begins, used) values ($1, $2, $3, $4)
       on conflict (app, budget, begins) do update set used = greatest(of_window.used, excluded.used)`,
      [app, name, new Date(begins), limit],
    );
    await within(answerMs, stored).catch(() => undefined);
  }
}
