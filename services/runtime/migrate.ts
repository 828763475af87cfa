import type { Pool, PoolClient } from 'pg';
import { type MigrationLimits, withTableLock } from '#contracts/ports/migration.ts';

/** Any constant: one migration at a time in a database, whoever starts first. */
const lockKey = 7_070_707;

/** Runs idempotent DDL in one transaction that no other migration of this database overlaps. Errors as `withTableLock`. */
export const withMigrationLock = (
  pool: Pool,
  migrate: (tx: PoolClient) => Promise<void>,
  limits: MigrationLimits = {},
): Promise<void> => withTableLock(pool, lockKey, migrate, limits);
