-- The content library: jobs, uploads that may be left over, addresses of imports, bytes of each customer.

create table ops.media_jobs (
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
create index media_jobs_no_video on ops.media_jobs (workspace_id, due_at) where not video;
create index media_jobs_videos on ops.media_jobs (workspace_id, due_at) where video;
create index media_jobs_downloads on ops.media_jobs (workspace_id, fetch_at)
  where fetch_at is not null;
-- poisonCandidateAfter in services/media/jobs.ts.
create index media_jobs_suspects on ops.media_jobs (due_at) where attempts >= 2;

create table ops.media_offers (
  asset_id uuid primary key,
  key text not null,
  -- No process checks it before this instant.
  due_at timestamptz not null,
  -- Etag of the upload found at the last check; null: there was none.
  seen_etag text
);
create index media_offers_due on ops.media_offers (due_at);

create table ops.media_imports (
  -- The event names it. Two calls under one key make one row each, and the event names only one of them.
  id uuid primary key,
  asset_id uuid not null,
  key_version text not null,
  -- AES-256-GCM: 12 bytes of nonce, 16 of tag, the address.
  sealed bytea not null,
  noted_at timestamptz not null default now()
);
create index media_imports_assets on ops.media_imports (asset_id);
create index media_imports_old on ops.media_imports (noted_at);

create table ops.media_customers (
  customer_id uuid primary key,
  -- Sum of media_usage.bytes.
  bytes int8 not null default 0,
  -- Null: the default one.
  quota int8
);

create table ops.media_usage (
  asset_id uuid primary key,
  customer_id uuid not null,
  bytes int8 not null,
  -- For an upload that may never arrive: when a worker checks it. Null: it has arrived.
  reserved_until timestamptz
);
create index media_usage_reserved on ops.media_usage (reserved_until) where reserved_until is not null;

-- Every caller locks the customer's row first, so the sum holds. False: the quota would be passed.
create function ops.use_media(
  asset uuid, customer uuid, wanted int8, standard int8, until timestamptz, forced bool
) returns bool language plpgsql as $$
declare
  held ops.media_customers;
  before int8;
begin
  insert into ops.media_customers (customer_id) values (customer) on conflict do nothing;
  select * into held from ops.media_customers where customer_id = customer for update;
  select bytes into before from ops.media_usage where asset_id = asset;
  before := coalesce(before, 0);
  if not forced and wanted > before and held.bytes - before + wanted > coalesce(held.quota, standard) then
    return false;
  end if;
  if wanted = 0 and until is null then
    delete from ops.media_usage where asset_id = asset;
  else
    insert into ops.media_usage (asset_id, customer_id, bytes, reserved_until)
    values (asset, customer, wanted, until)
    on conflict (asset_id) do update
      set customer_id = excluded.customer_id, bytes = excluded.bytes, reserved_until = excluded.reserved_until;
  end if;
  return true;
end $$;

-- As use_media, if the count is still the one that its caller saw (null: none); a later count is newer.
create function ops.correct_media(asset uuid, customer uuid, seen int8, counted int8)
returns void language plpgsql as $$
begin
  insert into ops.media_customers (customer_id) values (customer) on conflict do nothing;
  perform from ops.media_customers where customer_id = customer for update;
  if seen is null then
    insert into ops.media_usage (asset_id, customer_id, bytes)
    select asset, customer, counted where counted > 0 on conflict do nothing;
  elsif counted = 0 then
    delete from ops.media_usage where asset_id = asset and bytes = seen and reserved_until is null;
  else
    update ops.media_usage set bytes = counted
    where asset_id = asset and bytes = seen and reserved_until is null;
  end if;
end $$;

-- The only writer of the sums: any change of a row, also one by hand, changes its customer's sum.
create function ops.sum_media() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    update ops.media_customers set bytes = bytes - old.bytes where customer_id = old.customer_id;
  end if;
  if tg_op <> 'DELETE' then
    insert into ops.media_customers as c (customer_id, bytes) values (new.customer_id, new.bytes)
    on conflict (customer_id) do update set bytes = c.bytes + excluded.bytes;
  end if;
  return null;
end $$;
create trigger media_usage_sum after insert or delete or update of bytes, customer_id
  on ops.media_usage for each row execute function ops.sum_media();
-- Position of the walk over the library that corrects wrong counts.
create table ops.media_recount (
  only_one bool primary key default true check (only_one),
  -- The last asset that was checked; null: the walk begins.
  after uuid,
  next_at timestamptz not null default now()
);
insert into ops.media_recount default values;
