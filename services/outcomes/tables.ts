import type { Pool } from 'pg';
import { migrate as migratePositions } from '#runtime/consuming/positions.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { migrateLeases } from '#runtime/work/leases.ts';
import { migrateHolds } from '#runtime/work/publishing-hold.ts';
import { migrateRestores } from '#runtime/work/restores.ts';
import { migrateNotedMonths } from '#services/workflows/quota/noted-months.ts';

/** Tables of the outcomes process: positions and leases, holds and restores, months of quotas, clean-ups to carry out. */
export const migrateOutcomes = async (pool: Pool): Promise<void> => {
  await migratePositions(pool);
  await migrateLeases(pool);
  await migrateHolds(pool);
  await migrateRestores(pool);
  await migrateNotedMonths(pool);
  await withMigrationLock(pool, async (tx) => {
    await tx.query(`
      create schema if not exists ops;
      create table if not exists ops.clean_ups (
        -- The stream of the archived client or of the disconnected account.
        stream text primary key,
        workspace_id uuid not null,
        -- Of the stream when the client was archived or the account was last disconnected, or later while it still was.
        revision int not null,
        correlation_id text not null,
        causation_id text not null,
        -- How far the walk over its open work has come; null: to its start.
        progress jsonb,
        -- Walks in a row that could not end everything.
        failures int not null default 0,
        due_at timestamptz not null default now(),
        -- Changes with each event that asks for the clean-up: a walk that began before the event keeps the row.
        version uuid not null default gen_random_uuid()
      );
      create index if not exists clean_ups_due on ops.clean_ups (workspace_id, due_at)`);
  });
};
