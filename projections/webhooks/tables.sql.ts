/** The tables of the first release; what came later is added by tables.ts. */
export const tablesSql = `
create schema if not exists ops;
-- One row; its lock puts every change of an endpoint in one order, and so the versions become visible in order.
create table if not exists ops.webhook_version (one bool primary key default true check (one), version int8 not null);
insert into ops.webhook_version (version) values (0) on conflict do nothing;

-- Endpoints as the dispatcher has folded them.
create table if not exists ops.webhook_endpoints (
  id uuid primary key,
  workspace_id uuid not null,
  -- Revision of its stream.
  revision int4 not null,
  -- WebhookState of services/domain/webhook.ts
  state jsonb not null,
  active bool not null,
  -- Commit position of the event that disabled it; null while it is active.
  disabled_position int8,
  -- Value of ops.webhook_version at its last change.
  version int8 not null
);
create index if not exists webhook_endpoints_version on ops.webhook_endpoints (version);

-- Which events an endpoint hears: those at commit positions [from, to) whose type its filter lets through.
create table if not exists ops.webhook_intervals (
  endpoint_id uuid not null,
  from_position int8 not null,
  -- Null: still open.
  to_position int8,
  workspace_id uuid not null,
  events text[] not null,
  version int8 not null,
  primary key (endpoint_id, from_position)
);
create index if not exists webhook_intervals_version on ops.webhook_intervals (version);
create index if not exists webhook_intervals_workspace on ops.webhook_intervals (workspace_id);

-- Envelopes, rendered once: one for all endpoints that hear the event.
create table if not exists ops.webhook_messages (
  -- \`created\` of the envelope.
  event_time timestamptz not null,
  -- Envelope id = webhook-id.
  id uuid not null,
  workspace_id uuid not null,
  type text not null,
  -- Commit position and <topic>-<partition> of the event, for the consistency token.
  position int8 not null,
  lane text not null,
  -- The exact bytes that are sent.
  body bytea not null,
  primary key (event_time, id)
) partition by range (event_time);

create table if not exists ops.webhook_deliveries (
  event_time timestamptz not null,
  id uuid not null,
  endpoint_id uuid not null,
  workspace_id uuid not null,
  message_id uuid not null,
  type text not null,
  position int8 not null,
  replay_id uuid,
  -- pending, delivered, failed, canceled
  status text not null default 'pending',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  delivered_at timestamptz,
  -- [{number, at, trigger, status, error, durationMs, responseBody}], oldest first
  attempts jsonb not null default '[]',
  -- Also finds one by its id alone, in each of the few partitions: one index instead of two.
  primary key (id, event_time)
) partition by range (event_time);
create index if not exists webhook_deliveries_list on ops.webhook_deliveries (endpoint_id, created_at, id);
-- For retention: is there anything young among what is of old events? BRIN, so that an insert pays next to nothing.
create index if not exists webhook_deliveries_created on ops.webhook_deliveries using brin (created_at);

-- What is still to be sent: a row for each pending delivery, and only while it is pending.
create table if not exists ops.webhook_queue (
  delivery_id uuid primary key,
  event_time timestamptz not null,
  message_id uuid not null,
  endpoint_id uuid not null,
  workspace_id uuid not null,
  -- 0 first tries, 1 retries, 2 replays
  lane int2 not null,
  -- When somebody may take it: its due time, or the end of the lease of whoever has it. The endpoint that is off
  -- keeps its rows here too; they are not looked at.
  next_at timestamptz not null,
  leased bool not null,
  -- Number of the last attempt begun, 0 before the first. It fences: a result names the attempt it is of.
  attempt int4 not null,
  -- Failures recorded since it was queued: its place in the schedule.
  tries int4 not null,
  -- scheduled, test, resend, replay
  trigger text not null,
  -- A person asked for this one: it is sent although the endpoint is off.
  forced bool not null default false
) with (fillfactor = 70);
create index if not exists webhook_queue_due on ops.webhook_queue (endpoint_id, lane, next_at);
-- Found without a look at all that waits for an endpoint that is off.
create index if not exists webhook_queue_forced on ops.webhook_queue (endpoint_id, next_at) where forced;

-- How an endpoint does: written by senders, one row each once something failed.
create table if not exists ops.webhook_health (
  endpoint_id uuid primary key,
  -- changedRevision under which this was seen; a row of an older one says nothing.
  seen_revision int4 not null,
  -- First failure since the last success, and the newest one.
  failing_since timestamptz,
  failed_at timestamptz,
  consecutive int4 not null default 0,
  -- Breaker: nothing is sent before this instant.
  open_until timestamptz,
  opened int4 not null default 0,
  -- gone, receiver: it is to be disabled, and somebody has to append it.
  disable text
) with (fillfactor = 70);

-- Stretches of the store that are read once more for one endpoint.
create table if not exists ops.webhook_jobs (
  id uuid primary key,
  -- catch_up, replay, purge
  kind text not null,
  endpoint_id uuid not null,
  workspace_id uuid not null,
  -- Everything at or before this commit position was read; null = nothing.
  cursor int8,
  -- Catch-up, until its first page is read: the position of the first event it reads; null = behind the cursor.
  from_inclusive int8,
  -- Catch-up: no head taken before this instant is the last one to read to. Null until its first step: that comes
  -- after the commit of the interval, whoever slept before it.
  settle_at timestamptz,
  -- That last head; null until it was taken.
  last_position int8,
  -- Replay: of \`created\`, from inclusive, to exclusive; and its filter.
  from_time timestamptz,
  to_time timestamptz,
  types text[],
  -- running, completed, canceled, failed
  status text not null default 'running',
  -- \`created\` of the newest event read.
  read_to timestamptz,
  minted int8 not null default 0,
  -- Nobody is to go on with it before this instant: its rate.
  not_before timestamptz not null default now(),
  failure text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  completed_at timestamptz
);
create index if not exists webhook_jobs_running on ops.webhook_jobs (not_before) where status = 'running';

-- Where in the store a time lies: the commit position and the time of an event now and then.
create table if not exists ops.webhook_marks (position int8 primary key, at timestamptz not null);
create index if not exists webhook_marks_at on ops.webhook_marks (at)`;
