import type { Pool, PoolClient } from 'pg';
import { type MigrationLimits, tablesLock, withTableLock } from '#contracts/base/migration.ts';

/**
 * Runs idempotent DDL in one transaction that no other migration of this database overlaps. Errors as `withTableLock`.
 */
export const withMigrationLock = (
  pool: Pool,
  migrate: (tx: PoolClient) => Promise<void>,
  limits: MigrationLimits = {},
): Promise<void> => withTableLock(pool, tablesLock, migrate, limits);

/**
 * Makes functions that carry the version of the code that calls them in their name, unless that version is there. Any
 * other function, and every table, is in a numbered file of `infra/postgres/schema`.
 * @param name one of them, without the schema
 */
export const ensureFunctions = async (pool: Pool, name: string, sql: string): Promise<void> => {
  const isMade = async (db: Pool | PoolClient): Promise<boolean> => {
    const found = await db.query("select 1 from pg_proc where proname = $1 and pronamespace = 'ops'::regnamespace", [
      name,
    ]);
    return found.rowCount !== 0;
  };
  if (await isMade(pool)) return;
  await withMigrationLock(pool, async (tx) => {
    if (!(await isMade(tx))) await tx.query(sql);
  });
};
