import type { Pool } from 'pg';
import { migrate as migratePositions } from '#runtime/consuming/positions.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { migrateLeases } from '#runtime/work/leases.ts';
import { migrateProgress } from '#runtime/work/progress.ts';
import { migrateImportUrls } from '#services/workflows/import-urls.ts';
import { migrateMediaUsage } from '#services/workflows/media-usage.ts';
import { poisonCandidateAfter } from './jobs.ts';

/** Tables of the media worker: positions and leases, jobs, and offers whose upload may be left over. */
export const migrateMedia = async (pool: Pool): Promise<void> => {
  await migratePositions(pool);
  await migrateLeases(pool);
  await migrateProgress(pool);
  await migrateImportUrls(pool);
  await migrateMediaUsage(pool);
  await withMigrationLock(pool, async (tx) => {
    await tx.query(`
      create schema if not exists ops;
      create table if not exists ops.media_jobs (
        asset_id uuid primary key,
        workspace_id uuid not null,
        -- Revision of the newest event that asks for work.
        revision int8 not null,
        -- Revision of its stream when the last try began.
        begun_at int8,
        -- Tries at that revision that began and did not end in order.
        attempts int not null default 0,
        -- Failed tries at that revision.
        failures int not null default 0,
        -- Failed downloads.
        fetches int not null default 0,
        -- A job that a post waits for is due from a day before its request, so it goes before the others.
        due_at timestamptz not null default now(),
        noted_at timestamptz not null default now(),
        tried_at timestamptz,
        -- It waits for a slot of the videos.
        video boolean not null default false,
        -- Blobs written for it. When it is done, the worker deletes those that its stream does not name.
        written text[] not null default '{}',
        -- When its file may be downloaded; null: it needs no download, or has its file. While it is set due_at is infinite.
        fetch_at timestamptz,
        -- When a worker first saw that the library no longer shows the deleted asset.
        hidden_at timestamptz
      );
      create index if not exists media_jobs_no_video on ops.media_jobs (workspace_id, due_at) where not video;
      create index if not exists media_jobs_videos on ops.media_jobs (workspace_id, due_at) where video;
      create index if not exists media_jobs_downloads on ops.media_jobs (workspace_id, fetch_at)
        where fetch_at is not null;
      create index if not exists media_jobs_suspects on ops.media_jobs (due_at) where attempts >= ${poisonCandidateAfter};
      create table if not exists ops.media_offers (
        asset_id uuid primary key,
        key text not null,
        -- No process checks it before this instant.
        due_at timestamptz not null,
        -- Etag of the upload found at the last check; null: there was none.
        seen_etag text
      );
      create index if not exists media_offers_due on ops.media_offers (due_at)`);
  });
};
