-- Which accounts and posts are asked for figures, and when.

-- Zones of workspaces and clients, as of this revision of their streams.
create table ops.insights_zones (
  id uuid primary key,
  timezone text,
  revision int8 not null,
  -- The client is archived or erased: its accounts are no longer polled.
  closed boolean not null default false
);

create table ops.insights_accounts (
  account_id uuid primary key,
  workspace_id uuid not null,
  -- Null: only an event of one of its posts has come.
  client_id uuid,
  platform text,
  network text,
  timezone text,
  connected boolean not null default false,
  -- Of the account's stream.
  revision int8 not null default -1,
  -- The end of the account's rest.
  not_before timestamptz,
  -- Rate limits in a row.
  limits int not null default 0,
  -- When the first of its jobs is due; each change of a job computes it again.
  next_at timestamptz
);
create index insights_accounts_ready on ops.insights_accounts (platform, greatest(next_at, not_before))
  where connected and next_at is not null;
create index insights_accounts_walk
  on ops.insights_accounts (platform, workspace_id, greatest(next_at, not_before))
  where connected and next_at is not null;
create index insights_accounts_client on ops.insights_accounts (client_id);
create index insights_accounts_of_client on ops.insights_accounts (client_id, account_id);

-- Archived and erased clients whose accounts may still have jobs.
create table ops.insights_closings (
  client_id uuid primary key,
  workspace_id uuid not null,
  erased boolean not null,
  -- The last account that the walk has passed; null: none.
  after uuid,
  noted_at timestamptz not null default now()
);
create index insights_closings_draw on ops.insights_closings (workspace_id, noted_at);

create table ops.insights_jobs (
  -- The target, or the account itself.
  id uuid primary key,
  kind text not null,
  workspace_id uuid not null,
  account_id uuid not null,
  due_at timestamptz not null,
  post_id uuid,
  external_id text,
  published_at timestamptz,
  -- How its media went out; null: unknown yet.
  use text,
  has_video boolean,
  -- When its network answered last.
  answered_at timestamptz,
  failures int not null default 0,
  -- When it first seemed gone, by the network's clock.
  gone_at timestamptz,
  -- Last revision seen in its stream of observations; null: none.
  seen_revision int,
  -- A refresh waits for it, and no poll has tried it since.
  wanted boolean not null default false
);
create index insights_jobs_account on ops.insights_jobs (account_id, due_at);
create index insights_jobs_wanted on ops.insights_jobs (account_id) where wanted;
create index insights_jobs_age on ops.insights_jobs (published_at);

create table ops.insights_refreshes (
  refresh_id uuid primary key,
  workspace_id uuid not null,
  -- Id of the request's event.
  cause_id uuid not null,
  correlation_id text not null,
  -- Its accounts that are not done.
  waiting int not null,
  -- After a failed completion: the instant of the next try.
  not_before timestamptz
);

-- Refreshes some of whose accounts are not asked yet: these have no row in the next table.
create table ops.insights_asks (
  refresh_id uuid primary key,
  workspace_id uuid not null,
  account_ids uuid[] not null,
  -- How many of them are asked.
  asked int not null default 0,
  noted_at timestamptz not null default now()
);
create index insights_asks_draw on ops.insights_asks (workspace_id, noted_at);
create index insights_refreshes_complete on ops.insights_refreshes (refresh_id) where waiting = 0;

create table ops.insights_refresh_accounts (
  refresh_id uuid not null,
  account_id uuid not null,
  -- The network did not answer for it or one of its posts.
  failed boolean not null default false,
  done boolean not null default false,
  primary key (refresh_id, account_id)
);
create index insights_refresh_accounts_open on ops.insights_refresh_accounts (account_id) where not done;

create table ops.insights_parked (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null,
  account_id uuid not null,
  -- Null: of the account itself.
  target_id uuid,
  platform text not null,
  reason text not null,
  raw text not null,
  at timestamptz not null default now()
);
create index insights_parked_account on ops.insights_parked (account_id, target_id);
create index insights_parked_at on ops.insights_parked (at);
