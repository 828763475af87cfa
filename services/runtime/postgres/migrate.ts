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
