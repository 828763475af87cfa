import type { Pool } from 'pg';
import { migrate as migratePositions } from '#runtime/consume.ts';
import { migrateLeases } from '#runtime/leases.ts';
import { withMigrationLock } from '#runtime/migrate.ts';

/** What the reports process keeps: its positions and leases, runs to be made, and when each report runs by itself. */
export const migrateReports = async (pool: Pool): Promise<void> => {
  await migratePositions(pool);
  await migrateLeases(pool);
  await withMigrationLock(pool, async (tx) => {
    await tx.query(`
      create schema if not exists ops;
      create table if not exists ops.report_jobs (
        -- The run; of a report that was removed the report itself.
        id uuid primary key,
        report_id uuid not null,
        workspace_id uuid not null,
        -- Times it was begun and did not end in order.
        attempts int not null default 0,
        due_at timestamptz not null default now(),
        -- Blobs that were or are being written for it: those its stream does not name in the end are deleted.
        written text[] not null default '{}'
      );
      create index if not exists report_jobs_due on ops.report_jobs (workspace_id, due_at);
      create table if not exists ops.report_schedules (
        report_id uuid primary key,
        workspace_id uuid not null,
        -- It runs at the first instant of its schedule after this one.
        after timestamptz not null,
        -- That instant; null: to be found out, as its definition or the zone has changed.
        due_at timestamptz,
        -- Another one whenever something was heard: what was found out before does not hold any more.
        heard uuid not null default gen_random_uuid(),
        -- Not looked at before.
        look_at timestamptz not null default now()
      );
      create index if not exists report_schedules_due on ops.report_schedules (due_at);
      create index if not exists report_schedules_unknown on ops.report_schedules (look_at) where due_at is null;
      create index if not exists report_schedules_workspace on ops.report_schedules (workspace_id)`);
  });
};
