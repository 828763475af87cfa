/**
 * Changes of tables, one at a time in a database. A change may take longer than a statement of the running system: an
 * index is built over all rows. A change that waited for a table's lock for ever would make every statement behind it
 * wait too, so it gives up its place after a while, reports the holder of the lock, and requests the lock again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg';

export interface MigrationLimits {
  /** Milliseconds for one statement. Default one hour. */
  readonly statementMs?: number;
  /** Milliseconds that one request for a lock waits; then statements queued behind it get their turn. Default 10 s. */
  readonly lockMs?: number;
  /** Milliseconds of waiting for locks in total. Default 15 minutes. */
  readonly patienceMs?: number;
  /** Milliseconds to try for a connection: when everything starts at once, one comes late. Default one minute. */
  readonly connectMs?: number;
  /** Milliseconds between two reports of a wait. Default 5 s. */
  readonly reportMs?: number;
  /** Receives the reports. Default: `process.emitWarning`. */
  readonly onWait?: (text: string) => void;
}

/** Key of the advisory lock for all tables except the events. Any number, but the same in every release. */
export const tablesLock = 7_070_707;

/**
 * A lock did not come in time, or two transactions deadlocked: a running process may hold one table and want another.
 */
const lockFaults: readonly unknown[] = ['55P03', '40P01'];

/** A client with this deadline: the pool's own one suits statements of the running system. */
const patient = (client: PoolClient, query_timeout: number): PoolClient =>
  Object.assign(Object.create(client) as PoolClient, {
    query: (asked: string | QueryConfig, values?: unknown[]) => {
      const query = typeof asked === 'string' ? { text: asked } : asked;
      return client.query({ query_timeout, ...query, ...(values === undefined ? {} : { values }) } as QueryConfig);
    },
  });

/** Names the sessions that block this one; null when none does, or no connection is free for the query. */
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
 * Runs idempotent changes in one transaction; no other change under the same lock overlaps it. `change` runs again when
 * a lock did not come, so it must have no effect outside of its transaction.
 * @param lock a number, or a text that is hashed to one
 * @throws Error when a lock did not come within `patienceMs`; the message names its holder and the remedy. The server's
 * or network's error when no connection came within `connectMs`
 */
export const withTableLock = async (
  pool: Pool,
  lock: number | string,
  change: (tx: PoolClient) => Promise<void>,
  limits: MigrationLimits = {},
): Promise<void> => {
  const { patienceMs = 900_000, onWait = (text: string): void => process.emitWarning(text, 'PostgresWait') } = limits;
  const began = performance.now();
  let holders = 'another session';
  const report = (found: string): void => {
    holders = found;
    onWait(`changing tables waits for ${holders}, since ${Math.round((performance.now() - began) / 1_000)} s`);
  };
  for (;;) {
    try {
      await attempt(pool, lock, change, limits, report);
      return;
    } catch (error) {
      if (!lockFaults.includes((error as { code?: unknown }).code)) throw error;
      if (performance.now() - began < patienceMs) continue;
      throw new Error(
        `the tables cannot be changed: a lock is held by ${holders}. End that session, or wait for it, and start again`,
        { cause: error },
      );
    }
  }
};

/** Wrong password, no such role or database, missing right: a retry gets the same answer. */
const isRefused = (error: unknown): boolean => /^(28|3D|42)/.test(String((error as { code?: unknown }).code));

const connected = async (pool: Pool, withinMs: number): Promise<PoolClient> => {
  for (const began = performance.now(); ; await delay(200)) {
    try {
      return await pool.connect();
    } catch (error) {
      if (isRefused(error) || performance.now() - began > withinMs) throw error;
    }
  }
};

const attempt = async (
  pool: Pool,
  lock: number | string,
  change: (tx: PoolClient) => Promise<void>,
  { statementMs = 3_600_000, lockMs = 10_000, reportMs = 5_000, connectMs = 60_000 }: MigrationLimits,
  report: (holders: string) => void,
): Promise<void> => {
  const client = await connected(pool, connectMs);
  const tx = patient(client, statementMs);
  // A connection that dies fails the statement; without a listener it would end the process too.
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
      if (holders !== null) report(holders);
    }, reportMs);
    const key = typeof lock === 'number' ? '$1' : 'hashtextextended($1, 0)';
    await tx.query(`select pg_advisory_xact_lock(${key})`, [lock]);
    await change(tx);
    await tx.query('commit');
  } catch (error) {
    if (broken === undefined) await client.query('rollback').catch(died);
    throw error;
  } finally {
    clearInterval(watch);
    client.off('error', died);
    client.release(broken);
  }
};
