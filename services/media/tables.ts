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
        written text[] not null default '{}'
      );
      alter table ops.media_jobs add column if not exists tried_at timestamptz,
        add column if not exists video boolean not null default false,
        -- When its file may be downloaded; null: it needs no download, or has its file. While it is set due_at is infinite,
        -- so that a release without a lane of downloads leaves the job alone.
        add column if not exists fetch_at timestamptz,
        -- When a worker first saw that the library no longer shows the deleted asset.
        add column if not exists hidden_at timestamptz;
      create index if not exists media_jobs_due on ops.media_jobs (workspace_id, due_at);
      create index if not exists media_jobs_no_video on ops.media_jobs (workspace_id, due_at) where not video;
      create index if not exists media_jobs_videos on ops.media_jobs (workspace_id, due_at) where video;
      create index if not exists media_jobs_downloads on ops.media_jobs (workspace_id, fetch_at)
        where fetch_at is not null;
      create index if not exists media_jobs_suspects on ops.media_jobs (due_at) where attempts >= ${poisonCandidateAfter};
      -- A release without a lane of downloads also makes rows of imports, and its worker would fetch the shortened address
      -- of the event. This trigger puts the row into the lane that such a worker does not read.
      create or replace function ops.media_jobs_lane() returns trigger language plpgsql as $$
      begin
        if exists (select 1 from ops.media_imports i where i.asset_id = new.asset_id) then
          new.fetch_at := new.due_at;
          new.due_at := 'infinity';
        end if;
        return new;
      end $$;
      create or replace trigger media_jobs_lane before insert or update of due_at on ops.media_jobs
        for each row when (new.fetch_at is null) execute function ops.media_jobs_lane();
      create table if not exists ops.media_offers (
        asset_id uuid primary key,
        key text not null,
        -- No process checks it before this instant.
        due_at timestamptz not null,
        -- Etag of the upload found at the last check; null: there was none.
        seen_etag text
      );
      alter table ops.media_offers add column if not exists seen_etag text;
      create index if not exists media_offers_due on ops.media_offers (due_at)`);
  });
};
