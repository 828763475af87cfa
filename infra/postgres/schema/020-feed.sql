-- The feed: every event of a workspace in the order of the store, numbered without a gap from 1, and the tree of hashes over
-- it. All but the keys, the checkpoints and the uses follows from the store, and is made anew from it.

-- How far the store has been read. One row.
create table ops.feed_position (
  id int2 primary key default 1 check (id = 1),
  -- Null: nothing has been read.
  position int8,
  event_id uuid
);
insert into ops.feed_position default values;

-- A restore takes events back: numbers are then given a second time, to other events. An epoch is what lies between two restores.
create table ops.feed_epochs (
  epoch int4 primary key,
  began_at timestamptz not null default now(),
  -- The declared restore after which it began; null: the first one, or a process found that the store has lost events.
  restored_at timestamptz
);
insert into ops.feed_epochs (epoch) values (1);

-- The last event of a workspace that an epoch took over from the one before.
create table ops.feed_kept (
  workspace_id uuid not null,
  epoch int4 not null,
  sequence int8 not null,
  primary key (workspace_id, epoch)
);

create table ops.feed_events (
  workspace_id uuid not null,
  sequence int8 not null,
  position int8 not null,
  event_id uuid not null,
  stream text not null,
  revision int8 not null,
  type text not null,
  -- When the store took it, never before the event ahead of it.
  at timestamptz not null,
  -- Null: it belongs to no client.
  client_id uuid,
  -- Of the leaf, SHA-256.
  hash bytea not null,
  primary key (workspace_id, sequence)
);
create index feed_events_stream on ops.feed_events (stream, revision);
create index feed_events_client on ops.feed_events (workspace_id, client_id, sequence) where client_id is not null;
create index feed_events_type on ops.feed_events (workspace_id, type, sequence);

-- Of each workspace: how many events its feed has, and the hashes of the whole subtrees that they make up, the largest first.
create table ops.feed_heads (
  workspace_id uuid primary key,
  size int8 not null,
  at timestamptz not null,
  frontier bytea not null
) with (fillfactor = 50);

-- Roots of whole subtrees of 2^level leaves, at every eighth level: a proof makes the levels between from 256 of them.
create table ops.feed_subtrees (
  workspace_id uuid not null,
  level int2 not null,
  index int8 not null,
  hash bytea not null,
  primary key (workspace_id, level, index)
);

-- What the installation has signed, for ever: whoever kept one can hold it against a later one.
create table ops.feed_checkpoints (
  workspace_id uuid not null,
  epoch int4 not null,
  size int8 not null,
  signed_at timestamptz not null,
  note text not null,
  primary key (workspace_id, epoch, size)
);

create table ops.feed_keys (
  -- The first 8 hexadecimal digits of the key's hash, as notes name it.
  id text primary key,
  public_key bytea not null,
  -- The private key, encrypted under SECRET_KEY; null: it is retired, and its notes are still verified.
  sealed text,
  made_at timestamptz not null default now(),
  retired_at timestamptz
);
-- One key signs.
create unique index feed_keys_signing on ops.feed_keys ((true)) where retired_at is null;

-- Who read what of the feed: one row for a credential, what it asked and an hour.
create table ops.audit_reads (
  workspace_id uuid not null,
  hour timestamptz not null,
  credential text not null,
  asked text not null,
  -- The first and the last sequence that it got; null: none.
  first_sequence int8,
  last_sequence int8,
  times int8 not null default 1,
  primary key (workspace_id, hour, credential, asked)
);
