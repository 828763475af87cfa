import type { Pool, QueryConfig } from 'pg';
import { withConnection } from '#runtime/postgres/transactions.ts';

/** How often the session that holds the lock is probed, and how long an answer may take. Milliseconds. */
const defaultBeatMs = 10_000;

/**
 * Runs the rebuild of `name` while no other process of this database rebuilds it. The signal of `work` aborts when the
 * session, and with it the lock, is lost: the process that takes the lock next drops the tables of this rebuild.
 * @throws Error where another process holds the lock, and where the lock was lost
 */
export const withRebuildLock = async <T>(
  pool: Pool,
  name: string,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  beatMs = defaultBeatMs,
): Promise<T> =>
  withConnection(pool, async (session, died) => {
    const { rows } = await session.query('select pg_try_advisory_lock(hashtextextended($1, 0)) as ok', [
      `rebuild ${name}`,
    ]);
    // A pooled session would keep the lock; the server frees it when the session ends.
    died(new Error('a session that held a lock is not reused'));
    if (rows[0]?.ok !== true) throw new Error(`another rebuild of ${name} is running: wait until it ends`);
    const lost = new AbortController();
    const lose = (cause: unknown): void =>
      lost.abort(new Error(`rebuild of ${name}: the session that held its lock was lost; start it again`, { cause }));
    session.on('error', lose);
    const ask = (text: string) => session.query({ text, query_timeout: beatMs / 2 } as QueryConfig).catch(lose);
    const beat = setInterval(() => ask('select 1'), beatMs);
    try {
      return await work(AbortSignal.any([signal, lost.signal]));
    } catch (error) {
      throw lost.signal.aborted ? lost.signal.reason : error;
    } finally {
      clearInterval(beat);
      // The server frees the lock some time after the goodbye, and until then it would refuse the next rebuild.
      if (!lost.signal.aborted) await ask('select pg_advisory_unlock_all()');
      session.off('error', lose);
    }
  });
