import type { Pool } from 'pg';
import { migrate as migratePositions } from '#runtime/consuming/positions.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { migrateLeases } from '#runtime/work/leases.ts';
import { migrateProgress } from '#runtime/work/progress.ts';
import { migrateImportUrls } from '#services/workflows/import-urls.ts';
import { migrateMediaUsage } from '#services/workflows/media-usage.ts';
import { suspectAfter } from './jobs.ts';

/** What the media worker keeps: its positions and leases, what is to be worked on, offers whose upload may be left over. */
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
        -- Revision of the newest event heard of that asks for work.
        revision int8 not null,
        -- Revision of its stream at which it was begun the last time.
        begun_at int8,
        -- Times it was begun at that revision, and did not end in order.
        attempts int not null default 0,
        -- Faults of the surroundings at that revision.
        failures int not null default 0,
        -- Downloads that did not succeed.
        fetches int not null default 0,
        -- Those that a post waits for are due since a day before they were asked for.
        due_at timestamptz not null default now(),
        noted_at timestamptz not null default now(),
        tried_at timestamptz,
        -- It waits for room among the videos.
        video boolean not null default false,
        -- Blobs that were or are being written for it: those its stream does not name in the end are deleted.
        written text[] not null default '{}'
      );
      alter table ops.media_jobs add column if not exists tried_at timestamptz,
        add column if not exists video boolean not null default false,
        -- When its file may be brought here; null: there is no need, or it is here. While it is set due_at is infinite,
        -- so that a release that knows no lane of downloads leaves it alone.
        add column if not exists fetch_at timestamptz,
        -- When it was first seen that the library shows the deleted asset to nobody.
        add column if not exists hidden_at timestamptz;
      create index if not exists media_jobs_due on ops.media_jobs (workspace_id, due_at);
      create index if not exists media_jobs_no_video on ops.media_jobs (workspace_id, due_at) where not video;
      create index if not exists media_jobs_videos on ops.media_jobs (workspace_id, due_at) where video;
      create index if not exists media_jobs_downloads on ops.media_jobs (workspace_id, fetch_at)
        where fetch_at is not null;
      create index if not exists media_jobs_suspects on ops.media_jobs (due_at) where attempts >= ${suspectAfter};
      -- A release that knows no lane of downloads hears of an import, too, and its worker would fetch the part of the
      -- address that the event has. Its row is put into the lane that it does not look at.
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
        -- Not looked at before.
        due_at timestamptz not null,
        -- Etag of the upload that lay there at the last look; null: none did.
        seen_etag text
      );
      alter table ops.media_offers add column if not exists seen_etag text;
      create index if not exists media_offers_due on ops.media_offers (due_at)`);
  });
};
