-- What the dispatcher mints into and the sender works off. It records what was sent to customers, and the log does not
-- hold that: back it up, nothing rebuilds it. Processes make the weekly partitions of messages and deliveries.

-- One row. Every change of an endpoint takes its lock, so versions become visible in their order.
create table ops.webhook_version (one bool primary key default true check (one), version int8 not null);
insert into ops.webhook_version (version) values (0);

-- Endpoints as the dispatcher has folded them.
create table ops.webhook_endpoints (
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
  version int8 not null,
  -- When the event at the disabled position occurred.
  disabled_at timestamptz
);
create index webhook_endpoints_version on ops.webhook_endpoints (version);

-- A replay queries this before each page: which endpoints share its host.
create index webhook_endpoints_active on ops.webhook_endpoints (workspace_id) where active;

-- The events that an endpoint subscribes to: those at commit positions [from, to) whose type its filter includes.
create table ops.webhook_intervals (
  endpoint_id uuid not null,
  from_position int8 not null,
  -- Null: still open.
  to_position int8,
  workspace_id uuid not null,
  events text[] not null,
  version int8 not null,
  -- The clients to whose events it is limited; null: all.
  client_ids uuid[],
  primary key (endpoint_id, from_position)
);
create index webhook_intervals_version on ops.webhook_intervals (version);
create index webhook_intervals_workspace on ops.webhook_intervals (workspace_id);

-- Envelopes, rendered once: all endpoints that receive the event share one.
create table ops.webhook_messages (
  -- `created` of the envelope.
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

create table ops.webhook_deliveries (
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
  -- Of the event; null: none.
  client_id uuid,
  -- Also finds a delivery by its id alone, in each of the few partitions: one index instead of two.
  primary key (id, event_time)
) partition by range (event_time);
create index webhook_deliveries_list on ops.webhook_deliveries (endpoint_id, created_at, id);

-- Retention asks whether a week of old events has young deliveries. BRIN costs an insert next to nothing.
create index webhook_deliveries_created on ops.webhook_deliveries using brin (created_at);

-- One row for each pending delivery, deleted when the delivery is no longer pending.
create table ops.webhook_queue (
  delivery_id uuid primary key,
  event_time timestamptz not null,
  message_id uuid not null,
  endpoint_id uuid not null,
  workspace_id uuid not null,
  -- 0 first tries, 1 retries, 2 replays
  lane int2 not null,
  -- When a sender may take it: its due time, or the end of the lease of the sender that has it. Rows of an endpoint
  -- that is off stay here, and no sender reads them.
  next_at timestamptz not null,
  leased bool not null,
  -- Number of the last attempt begun, 0 before the first. A fence: a result counts only for the attempt that it names.
  attempt int4 not null,
  -- Failures recorded since it was queued, which decide the next wait.
  tries int4 not null,
  -- scheduled, test, resend, replay
  trigger text not null,
  -- A person requested it: it is sent although the endpoint is off.
  forced bool not null default false
) with (fillfactor = 70);
create index webhook_queue_due on ops.webhook_queue (endpoint_id, lane, next_at);

-- Finds forced rows without reading all other rows of an endpoint that is off.
create index webhook_queue_forced on ops.webhook_queue (endpoint_id, next_at) where forced;

-- Health of endpoints, written by senders: an endpoint gets its row with its first failure.
create table ops.webhook_health (
  endpoint_id uuid primary key,
  -- changedRevision of the endpoint at these answers; a row of an older revision is void.
  seen_revision int4 not null,
  -- First failure since the last success, and the newest one.
  failing_since timestamptz,
  failed_at timestamptz,
  consecutive int4 not null default 0,
  -- Breaker: nothing is sent before this instant.
  open_until timestamptz,
  opened int4 not null default 0,
  -- gone, receiver: why a sender must turn the endpoint off; null: it must not.
  disable text
) with (fillfactor = 70);

-- Jobs that read a range of the store again for one endpoint.
create table ops.webhook_jobs (
  id uuid primary key,
  -- catch_up, replay, purge
  kind text not null,
  endpoint_id uuid not null,
  workspace_id uuid not null,
  -- The job has read everything at or before this commit position; null = nothing.
  cursor int8,
  -- Catch-up, until its first page is read: the position of the first event it reads; null = behind the cursor.
  from_inclusive int8,
  -- Catch-up: a head taken before this instant is not the last one to read to. The first step sets it: that step
  -- follows the commit of the interval.
  settle_at timestamptz,
  -- The last head to read to; null until it is taken.
  last_position int8,
  -- Replay: of `created`, from inclusive, to exclusive; and its filter.
  from_time timestamptz,
  to_time timestamptz,
  types text[],
  -- running, completed, canceled, failed
  status text not null default 'running',
  -- `created` of the newest event read.
  read_to timestamptz,
  minted int8 not null default 0,
  -- No process continues the job before this instant, which keeps the rate of a replay.
  not_before timestamptz not null default now(),
  failure text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  completed_at timestamptz,
  -- For the catch-up of an interval that begins at its own event: the epoch of the dispatcher's only lane when the
  -- interval was committed. Null where the log has several lanes, or where the past is read too.
  known_epoch int8
);
create index webhook_jobs_running on ops.webhook_jobs (not_before) where status = 'running';
create index webhook_jobs_replays on ops.webhook_jobs (workspace_id) where kind = 'replay' and status = 'running';

-- Secrets of endpoints as of their newest rotations, which senders read before the dispatcher has folded them.
create table ops.webhook_rotations (
  endpoint_id uuid primary key,
  -- Of the endpoint's stream, at the rotation.
  revision int4 not null,
  secrets jsonb not null
);

-- Endpoints about to be registered: they count before the read model shows them.
create table ops.webhook_places (
  webhook_id uuid primary key,
  workspace_id uuid not null,
  taken_at timestamptz not null default now()
);
create index webhook_places_workspace on ops.webhook_places (workspace_id);

-- Maps times to positions in the store: commit position and time of an event now and then.
create table ops.webhook_marks (position int8 primary key, at timestamptz not null);
create index webhook_marks_at on ops.webhook_marks (at);

-- One row for each workspace with jobs. A trigger keeps the rows, so that every writer of a job schedules its workspace.
create table ops.webhook_job_schedule (
  workspace_id uuid primary key,
  -- When its next step is due, or the end of its lease.
  next_at timestamptz not null,
  -- Counts the jobs that arrived, so that the process that releases the workspace detects a job that arrived meanwhile.
  version int8 not null default 0
) with (fillfactor = 70);
create index webhook_job_schedule_next on ops.webhook_job_schedule (next_at);
create index webhook_jobs_due on ops.webhook_jobs (workspace_id, not_before) where status = 'running';

create function ops.schedule_webhook_job() returns trigger language plpgsql as $$
begin
  insert into ops.webhook_job_schedule (workspace_id, next_at) values (new.workspace_id, new.not_before)
  on conflict (workspace_id) do update
    set next_at = least(webhook_job_schedule.next_at, excluded.next_at), version = webhook_job_schedule.version + 1;
  return null;
end $$;
create trigger webhook_job_made after insert on ops.webhook_jobs
  for each row when (new.status = 'running') execute function ops.schedule_webhook_job();
create trigger webhook_job_earlier after update of not_before on ops.webhook_jobs
  for each row when (new.status = 'running' and new.not_before < old.not_before) execute function ops.schedule_webhook_job();
