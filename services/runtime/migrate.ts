import type { Pool, PoolClient } from 'pg';

/** Any constant: one migration at a time in a database, whoever starts first. */
const lockKey = 7_070_707;

/** Runs idempotent DDL in one transaction that no other migration of this database overlaps. */
export const withMigrationLock = async (pool: Pool, migrate: (tx: PoolClient) => Promise<void>): Promise<void> => {
  const client = await pool.connect();
  // A connection that dies under us fails the statement; without a listener it would end the process too.
  const ignore = (): void => undefined;
  client.on('error', ignore);
  try {
    await client.query('begin');
    await client.query('select pg_advisory_xact_lock($1)', [lockKey]);
    await migrate(client);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  } finally {
    client.off('error', ignore);
    client.release();
  }
};
