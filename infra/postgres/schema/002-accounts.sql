-- Keys of clients and of the installation, credentials of networks, and what networks tell about accounts and apps.

create table ops.data_keys (
  client_id uuid primary key,
  key_version text,
  wrapped bytea,
  created_at timestamptz not null default now(),
  destroyed_at timestamptz,
  check ((destroyed_at is null) = (wrapped is not null and key_version is not null))
);

create table ops.secret_keys (
  version text primary key,
  check_value bytea not null,
  made_at timestamptz not null default now()
);

create table ops.network_credentials (
  account_id uuid primary key,
  workspace_id uuid not null,
  client_id uuid not null,
  platform text not null,
  version integer not null,
  -- AES-256-GCM under the client's data key: 12 bytes of iv, 16 of tag, the secret.
  sealed bytea not null,
  -- When a consent gave it; a refresh leaves it.
  kept_at timestamptz not null default now(),
  -- Null: until somebody ends it.
  expires_at timestamptz,
  -- The lease of a refresh: whose, and until when it may store its answer.
  refresher uuid,
  refresh_until timestamptz,
  -- Since when an answer may have been lost: a refresh ended without its result being stored.
  lost_since timestamptz,
  -- Refreshes in a row that were unavailable, and how long the watch leaves it alone.
  failures integer not null default 0,
  rests_until timestamptz,
  -- The network refused this version for good.
  lapse_reason text,
  lapse_reported boolean not null default false,
  check ((refresher is null) = (refresh_until is null))
);
create index network_credentials_ending
  on ops.network_credentials (platform, expires_at) where not lapse_reported;
create index network_credentials_clients on ops.network_credentials (client_id);

create table ops.connect_attempts (
  token_hash bytea primary key,
  browser_hash bytea not null,
  kind text not null,
  invite_id uuid not null,
  workspace_id uuid not null,
  client_id uuid not null,
  platform text not null,
  -- AES-256-GCM under the client's data key.
  sealed bytea not null,
  expires_at timestamptz not null
);
create index connect_attempts_invites on ops.connect_attempts (invite_id, expires_at);
create index connect_attempts_clients on ops.connect_attempts (client_id);
create index connect_attempts_expiry on ops.connect_attempts (expires_at);

create table ops.connect_codes (
  code text primary key,
  workspace_id uuid not null,
  expires_at timestamptz not null,
  -- How often the network was asked about who posted it.
  tries integer not null default 0,
  -- Where somebody who may speak for the place posted it.
  places text[] not null default '{}'
);
create index connect_codes_workspaces on ops.connect_codes (workspace_id);
create index connect_codes_ending on ops.connect_codes (expires_at);

create table ops.pushed_posts (
  place bigint not null,
  post bigint not null,
  pushed_at timestamptz not null default now(),
  -- The newest that the network said, as JSON, and the second in which it said so.
  reactions text,
  reacted_at bigint,
  discussion_group bigint,
  discussion_root bigint,
  comments integer not null default 0,
  -- Number of the last message that was counted.
  last_comment bigint,
  primary key (place, post)
);
create index pushed_posts_discussions on ops.pushed_posts (discussion_group, discussion_root)
  where discussion_group is not null;
create index pushed_posts_ending on ops.pushed_posts (pushed_at);

create table ops.app_rests (
  app text not null,
  -- all or reads
  what text not null,
  until timestamptz not null,
  -- What the network said, as a failure of a target.
  failure jsonb not null,
  primary key (app, what)
);

create table ops.app_reads (
  app text not null,
  -- YYYY-MM in UTC
  month text not null,
  used bigint not null check (used >= 0),
  primary key (app, month)
);

create table ops.app_read_shares (
  app text not null,
  month text not null,
  workspace_id uuid not null,
  used bigint not null check (used >= 0),
  primary key (app, month, workspace_id)
);

create function ops.take_app_reads(r_app text, r_month text, r_kept text, r_workspace uuid,
  r_reads int8, r_monthly int8, r_open int8) returns text language plpgsql as $body$
declare
  of_all int8;
  own int8;
begin
  -- Takes the lock of the month, so that the counts of two processes never overlap.
  insert into ops.app_reads as month (app, month, used) values (r_app, r_month, 0)
    on conflict (app, month) do update set used = month.used returning month.used into of_all;
  if of_all + r_reads > r_monthly then
    return 'month_spent';
  end if;
  select used into own from ops.app_read_shares
    where app = r_app and month = r_month and workspace_id = r_workspace;
  if coalesce(own, 0) + of_all + 2 * r_reads > r_open then
    return 'share_spent';
  end if;
  insert into ops.app_read_shares as share (app, month, workspace_id, used)
    values (r_app, r_month, r_workspace, r_reads)
    on conflict (app, month, workspace_id) do update set used = share.used + excluded.used;
  update ops.app_reads set used = used + r_reads where app = r_app and month = r_month;
  -- Shares of months that are over have no use.
  delete from ops.app_read_shares where app = r_app and month < r_kept;
  return 'taken';
end
$body$;
