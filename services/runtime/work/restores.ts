import type { Pool } from 'pg';
import { everyWorkspace } from './publishing-hold.ts';
import { Reading } from './reading.ts';

/**
 * Which restores of this installation were declared. The newest row is in force: what is older than it is asked about
 * before it goes out, for ever. The row comes before the work on targets, so that a command that dies half way has
 * decided everything already, and a repeat of it only goes on.
 */

type Queries = Pick<Pool, 'query'>;

export interface DeclaredRestore {
  readonly restoredAt: string;
  readonly storeAsOf: string;
  /** Name of the operator, or `the start:` and what a process found. */
  readonly by: string;
  readonly completedAt: string | null;
}

interface Row {
  readonly restored_at: Date;
  readonly store_as_of: Date;
  readonly declared_by: string;
  readonly completed_at: Date | null;
}

const newestSql =
  'select restored_at, store_as_of, declared_by, completed_at from ops.restores order by restored_at desc limit 1';

const asRestore = ({
  restored_at: at,
  store_as_of: asOf,
  declared_by,
  completed_at: completed,
}: Row): DeclaredRestore => ({
  by: declared_by,
  restoredAt: at.toISOString(),
  storeAsOf: asOf.toISOString(),
  completedAt: completed?.toISOString() ?? null,
});

export const newestRestore = async (pool: Queries): Promise<DeclaredRestore | null> => {
  const { rows } = await pool.query<Row>(newestSql);
  return rows[0] === undefined ? null : asRestore(rows[0]);
};

/** Restores that are looked at: each was declared by a person or a start. */
const maxRestores = 20;

/** Instants of the restores that were declared at this one or later, ISO 8601, the newest first. */
export const restoresSince = async (pool: Queries, instant: string): Promise<readonly string[]> => {
  const { rows } = await pool.query<Pick<Row, 'restored_at'>>(
    'select restored_at from ops.restores where restored_at >= $1 order by restored_at desc limit $2',
    [instant, maxRestores],
  );
  return rows.map(({ restored_at: at }) => at.toISOString());
};

/** The newest restore, where it is of that copy and recorded; null: there is work to do. */
export const completedRestoreOf = async (pool: Queries, storeAsOf: string): Promise<DeclaredRestore | null> => {
  const newest = await newestRestore(pool);
  return newest?.storeAsOf === storeAsOf && newest.completedAt !== null ? newest : null;
};

/**
 * Declares that this installation is an older copy, and holds publishing until an operator resumes it; both or neither.
 * From then on no process claims what may be out already. A repeat for the same copy keeps the first instant.
 * For the operator's command, and for a process that finds at its start that it is older than what others have seen.
 * @param storeAsOf when the copy was made, ISO 8601
 * @param again another restore of the same copy
 */
export const restored = async (
  pool: Queries,
  storeAsOf: string,
  by: string,
  { again = false }: { readonly again?: boolean } = {},
): Promise<void> => {
  // Instants of events have milliseconds.
  await pool.query(
    `with held as (
       insert into ops.publishing_holds (scope, since, set_by) values ($3, now(), $2) on conflict (scope) do nothing
     )
     insert into ops.restores (restored_at, store_as_of, declared_by)
     select date_trunc('milliseconds', now()), $1::timestamptz, $2
     where $4 or not exists (
       select from ops.restores r where r.store_as_of = $1::timestamptz
         and r.restored_at = (select max(restored_at) from ops.restores))
     on conflict (restored_at) do nothing`,
    [storeAsOf, by, everyWorkspace, again],
  );
};

export const completeRestore = async (pool: Queries, restoredAt: string): Promise<void> => {
  await pool.query('update ops.restores set completed_at = coalesce(completed_at, now()) where restored_at = $1', [
    restoredAt,
  ]);
};

/** A person has looked at the account since the restore: what is due later goes out without another question. */
export const trustAccount = async (pool: Queries, accountId: string, by: string): Promise<void> => {
  await pool.query(
    `insert into ops.restore_words (account_id, said_at, said_by) values ($1, now(), $2)
     on conflict (account_id) do update set said_at = excluded.said_at, said_by = excluded.said_by`,
    [accountId, by],
  );
};

const shownMs = 7 * 86_400_000;

/** What this process knows of the restores: at most a second old. */
export class Restores {
  readonly #pool: Queries;
  readonly #newest: Reading<DeclaredRestore | null>;

  constructor(pool: Queries) {
    this.#pool = pool;
    this.#newest = new Reading('the restores', () => newestRestore(pool));
  }

  /** @throws where the database has not answered for long */
  newest(): Promise<DeclaredRestore | null> {
    return this.#newest.get();
  }

  /** The line for /readyz, a week long; null: there is nothing to tell. */
  async line(): Promise<string | null> {
    const newest = await this.newest();
    if (newest === null || Date.now() > Date.parse(newest.restoredAt) + shownMs) return null;
    const { restoredAt, storeAsOf, by, completedAt } = newest;
    const recorded = completedAt === null ? 'what was due is being recorded' : 'what was due is recorded';
    return `from a copy of ${storeAsOf}, declared ${restoredAt} by ${by}; ${recorded}`;
  }

  /** As `restored`; this process knows it at once. */
  async declare(storeAsOf: string, by: string): Promise<void> {
    await restored(this.#pool, storeAsOf, by);
    this.#newest.forget();
  }

  /** As `trustAccount`. */
  trust(accountId: string, by: string): Promise<void> {
    return trustAccount(this.#pool, accountId, by);
  }

  /** Those of these accounts at which nobody has looked since the restore, in their order. */
  async unlooked(
    accountIds: readonly string[],
    { restoredAt }: Pick<DeclaredRestore, 'restoredAt'>,
  ): Promise<readonly string[]> {
    if (accountIds.length === 0) return [];
    const { rows } = await this.#pool.query<{ readonly id: string }>(
      'select account_id::text as id from ops.restore_words where account_id = any($1::uuid[]) and said_at > $2',
      [accountIds, restoredAt],
    );
    const looked = new Set(rows.map(({ id }) => id));
    return accountIds.filter((id) => !looked.has(id));
  }
}
