import type { Pool, PoolClient } from 'pg';
import { QueryTimeout } from '#contracts/ports/database.ts';

/** Connections and transactions of the effects of events. */

/**
 * Effects find rows by key. Postgres plans a statement once a session; one planned while its table was small would scan
 * all of it until new statistics come, which under load is a minute of growth.
 */
export const byKey = 'begin; set local enable_seqscan = off';

/**
 * Gives `work` one connection. It may die at any moment, also between two statements: without a listener that would end the
 * process. `work` calls `died` with what left the connection in an unknown state.
 */
export const withConnection = async <T>(
  pool: Pool,
  work: (connection: PoolClient, died: (error: Error) => void) => Promise<T>,
): Promise<T> => {
  const connection = await pool.connect();
  let broken: Error | undefined;
  const died = (error: Error): void => {
    broken = error;
  };
  connection.on('error', died);
  try {
    return await work(connection, died);
  } catch (error) {
    if (error instanceof QueryTimeout) died(error);
    throw error;
  } finally {
    connection.off('error', died);
    // A connection that is broken, or whose state is not known, is not given back.
    connection.release(broken);
  }
};

/** Runs the effects of events in a transaction of its own and commits when `work` says so. */
export const inTransaction = async <T>(
  pool: Pool,
  work: (tx: PoolClient) => Promise<{ readonly commit: boolean; readonly result: T }>,
  begin = byKey,
): Promise<T> => {
  return withConnection(pool, async (tx, died) => {
    try {
      await tx.query(begin);
      const { commit, result } = await work(tx);
      await tx.query(commit ? 'commit' : 'rollback');
      return result;
    } catch (error) {
      // A session that did not answer is not asked for more: the server rolls back when it finds the connection closed.
      if (error instanceof QueryTimeout) died(error);
      else await tx.query('rollback').catch(died);
      throw error;
    }
  });
};
