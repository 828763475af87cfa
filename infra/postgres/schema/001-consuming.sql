-- Consumers of the log: how far each has read, and what it has set aside. Records of the read models, whose own tables
-- the processes make from the models. The relay's checkpoint.

create schema if not exists read;

create table ops.consumer_positions (
  consumer_group text not null,
  lane text not null,
  next_offset int8,
  position int8,
  epoch int8 not null default 0,
  updated_at timestamptz not null default now(),
  -- The newest event that a batch had at its end, and its position.
  event_id uuid,
  event_position int8,
  primary key (consumer_group, lane)
) with (fillfactor = 50);

-- False: another owner, or there already. A log that repeats older records takes no position back.
create function ops.consume_move(m_group text, m_lane text, m_epoch int8, m_next int8, m_position int8,
  m_event uuid) returns bool language plpgsql as $$
declare
  is_known bool := m_event is not null;
begin
  update ops.consumer_positions p
  set next_offset = m_next, position = greatest(p.position, m_position), updated_at = now(),
    event_id = case when is_known and (p.position is null or m_position >= p.position)
      then m_event else p.event_id end,
    event_position = case when is_known and (p.position is null or m_position >= p.position)
      then m_position else p.event_position end
  where p.consumer_group = m_group and p.lane = m_lane and p.epoch = m_epoch
    and (p.next_offset, p.position) is distinct from (m_next, m_position);
  return found;
end $$;

create table ops.parked_events (
  consumer_group text not null,
  stream text not null,
  revision int8 not null,
  event_id uuid not null,
  type text not null,
  position int8 not null,
  reason text not null,
  parked_at timestamptz not null default now(),
  workspace_id uuid,
  -- Of a stream's first row alone: from then on the stream is to be tried again.
  retry_at timestamptz,
  primary key (consumer_group, stream, revision)
);
create index parked_events_wanted on ops.parked_events (consumer_group, stream, revision)
  where retry_at is not null;
-- Rows that were parked for a reason of their own. The planner uses it only for a query that repeats this text, as
-- services/runtime/consuming/parking.ts does.
create index parked_events_blamed on ops.parked_events (consumer_group, parked_at)
  where reason <> 'an earlier event of its stream is parked';

create table ops.skipped_events (
  consumer_group text not null,
  stream text not null,
  revision int8 not null,
  event_id uuid not null,
  type text not null,
  reason text not null,
  skipped_at timestamptz not null default now(),
  primary key (consumer_group, stream, revision)
);

create table ops.projections (
  name text primary key,
  -- Generation of the tables that the views show.
  live int4 not null,
  -- Shape of the code that made that generation.
  shape int4 not null,
  -- Highest generation ever begun.
  newest int4 not null
);

create table ops.projection_readers (
  instance uuid not null,
  name text not null,
  generation int4 not null,
  until timestamptz not null,
  primary key (instance, name)
);

-- The relay's checkpoint, with its lease on the database's clock.
create table ops.relay_checkpoints (
  name text primary key,
  position bigint,
  epoch bigint not null default 0,
  holder text,
  until timestamptz not null default '-infinity',
  saved_at timestamptz,
  event_id uuid
);

-- Positions of each workspace's events in EventStoreDB, which cannot search for them; empty with the Postgres event
-- store, which keeps its own. They can be emptied and filled again.
create table ops.workspace_events (
  workspace uuid not null,
  position bigint not null,
  revision bigint not null,
  bytes integer not null,
  stream text collate "C" not null,
  primary key (workspace, position)
);

create table ops.workspace_index (
  one boolean primary key default true check (one),
  position bigint,
  event_id uuid
);
insert into ops.workspace_index default values;
