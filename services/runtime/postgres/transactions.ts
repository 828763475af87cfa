import type { Pool, PoolClient } from 'pg';
import { QueryTimeout } from '#contracts/ports/database.ts';

/** Connections and transactions for the effects of events. */

/**
 * Effects find rows by key, and Postgres plans each statement once a session: to plan the write of a batch anew takes as
 * long as ten of its rows. A plan made while its table was small would scan the table until new statistics come, which
 * under load is a minute of growth.
 */
export const byKey = 'begin; set local enable_seqscan = off; set local plan_cache_mode = force_generic_plan';

/**
 * Gives `work` one connection. It may die at any moment, also between two statements: without a listener that would end
 * the process. `work` calls `died` with the error that left the connection in an unknown state.
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
    // A broken connection, or one in an unknown state, does not go back to the pool.
    connection.release(broken);
  }
};

/** Runs the effects of events in their own transaction and commits when `work` returns `commit: true`. */
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
      // A session that did not answer gets no rollback: the server rolls back when it finds the connection closed.
      if (error instanceof QueryTimeout) died(error);
      else await tx.query('rollback').catch(died);
      throw error;
    }
  });
};
