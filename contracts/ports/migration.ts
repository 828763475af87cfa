/**
 * Changes of tables, one at a time in a database. They may take long where statements of the running system may not: an
 * index is built over all rows there are. What must not happen is that they wait for a lock without a word, or that the
 * system waits behind them: a lock that does not come is let go of, told, and asked for again.
 */
import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg';

export interface MigrationLimits {
  /** Milliseconds one statement may take. Default one hour. */
  readonly statementMs?: number;
  /** Milliseconds until a lock that does not come is asked for anew: what queues behind it gets its turn. Default 10 s. */
  readonly lockMs?: number;
  /** Milliseconds of waiting for locks in all. Default 15 minutes. */
  readonly patienceMs?: number;
  /** Milliseconds until a wait is told, and told again. Default 5 s. */
  readonly tellMs?: number;
  /** Default: a warning of the process. */
  readonly told?: (text: string) => void;
}

/** Of all tables beside the events: any constant, the same in every release. One process at a time changes them. */
export const tablesLock = 7_070_707;

const lockNotAvailable = '55P03';

/** Each statement with a time of its own: that of the pool is made for statements of the running system. */
const patient = (client: PoolClient, query_timeout: number): PoolClient =>
  Object.assign(Object.create(client) as PoolClient, {
    query: (asked: string | QueryConfig, values?: unknown[]) => {
      const query = typeof asked === 'string' ? { text: asked } : asked;
      return client.query({ query_timeout, ...query, ...(values === undefined ? {} : { values }) } as QueryConfig);
    },
  });

/** Who has what the session waits for; null when it does not wait, or nobody can be asked. */
const holdersFor = async (pool: Pool, pid: number): Promise<string | null> => {
  const { rows } = await pool
    .query<{ holder: string }>(
      `select coalesce(nullif(application_name, ''), 'unnamed') || ' (backend ' || pid || ', ' || coalesce(state, '?')
         || coalesce(', in a transaction since ' || xact_start::timestamptz(0), '') || ')' as holder
       from pg_stat_activity where pid = any(pg_blocking_pids($1))`,
      [pid],
    )
    .catch(() => ({ rows: [] }));
  return rows.length === 0 ? null : rows.map(({ holder }) => holder).join(', ');
};

/**
 * Runs idempotent changes in one transaction that no other of the same lock overlaps. They run again where a lock did
 * not come in time, so they may leave nothing behind but what they write.
 * @throws when a lock did not come within the patience; the message names who holds it.
 */
export const withTableLock = async (
  pool: Pool,
  lock: number | string,
  change: (tx: PoolClient) => Promise<void>,
  limits: MigrationLimits = {},
): Promise<void> => {
  const { patienceMs = 900_000, told = (text: string): void => process.emitWarning(text, 'PostgresWait') } = limits;
  const began = performance.now();
  let holders = 'another session';
  const tell = (found: string): void => {
    holders = found;
    told(`changing tables waits for ${holders}, since ${Math.round((performance.now() - began) / 1_000)} s`);
  };
  for (;;) {
    try {
      await attempt(pool, lock, change, limits, tell);
      return;
    } catch (error) {
      if ((error as { code?: unknown }).code !== lockNotAvailable) throw error;
      if (performance.now() - began < patienceMs) continue;
      throw new Error(
        `the tables cannot be changed: a lock is held by ${holders}. End that session, or wait for it, and start again`,
        { cause: error },
      );
    }
  }
};

const attempt = async (
  pool: Pool,
  lock: number | string,
  change: (tx: PoolClient) => Promise<void>,
  { statementMs = 3_600_000, lockMs = 10_000, tellMs = 5_000 }: MigrationLimits,
  tell: (holders: string) => void,
): Promise<void> => {
  const client = await pool.connect();
  const tx = patient(client, statementMs);
  // A connection that dies under us fails the statement; without a listener it would end the process too.
  let broken: Error | undefined;
  const died = (error: Error): void => {
    broken = error;
  };
  client.on('error', died);
  let watch: NodeJS.Timeout | undefined;
  try {
    const begun: unknown = await client.query(
      `begin; set local lock_timeout = ${lockMs}; select pg_backend_pid() as pid`,
    );
    const pid = (begun as QueryResult<{ pid: number }>[]).at(-1)?.rows[0]?.pid ?? 0;
    watch = setInterval(async () => {
      const holders = await holdersFor(pool, pid);
      if (holders !== null) tell(holders);
    }, tellMs);
    const key = typeof lock === 'number' ? '$1' : 'hashtextextended($1, 0)';
    await tx.query(`select pg_advisory_xact_lock(${key})`, [lock]);
    await change(tx);
    await tx.query('commit');
  } catch (error) {
    // Told by the lock that did not come, the session is sound; by anything else it may not be.
    if (broken === undefined) await client.query('rollback').catch(died);
    throw error;
  } finally {
    clearInterval(watch);
    client.off('error', died);
    client.release(broken);
  }
};
