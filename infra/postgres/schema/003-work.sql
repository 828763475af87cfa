-- Who does what: leases, progress, holds, restores, months of quotas, clean-ups, slots of cadences.

create sequence ops.work_lease_epochs;

create table ops.work_leases (
  kind text not null,
  id text not null,
  holder text not null,
  -- From one sequence for all rows: no epoch comes twice, even if the row was deleted in between.
  epoch bigint not null,
  until timestamptz not null,
  -- No worker may take it before this instant; null: as soon as it lapses.
  not_before timestamptz,
  primary key (kind, id)
) with (fillfactor = 50);

-- Resting rows by the end of their rest; renewals change none of its columns.
create index work_leases_resting on ops.work_leases (kind, not_before, id) where not_before is not null;

create unlogged table ops.progress (
  id uuid primary key,
  -- 0–1.
  done float4 not null,
  at timestamptz not null default now()
) with (fillfactor = 50);

create table ops.publishing_holds (
  -- A workspace, or 'all'.
  scope text primary key,
  since timestamptz not null,
  -- The operator who set it.
  set_by text not null
);

create table ops.restores (
  restored_at timestamptz primary key,
  store_as_of timestamptz not null,
  declared_by text not null,
  -- Null: the targets that were due are not all recorded as unknown yet; they are at their claim all the same.
  completed_at timestamptz
);

create table ops.restore_words (
  account_id uuid primary key,
  -- A person has looked at the account: of its targets that are due later none is out.
  said_at timestamptz not null,
  said_by text not null
);

create table ops.quota_months (
  workspace_id uuid not null,
  month text not null,
  -- Since when the sweeper has not looked at it.
  since timestamptz not null default now(),
  -- When a process last noted it.
  noted_at timestamptz not null default now(),
  primary key (workspace_id, month)
);
create index quota_months_since on ops.quota_months (since);

create table ops.clean_ups (
  -- The stream of the archived client or of the disconnected account.
  stream text primary key,
  workspace_id uuid not null,
  -- Of the stream when the client was archived or the account was last disconnected, or later while it still was.
  revision int not null,
  correlation_id text not null,
  causation_id text not null,
  -- How far the walk over its open work has come; null: to its start.
  progress jsonb,
  -- Walks in a row that could not end everything.
  failures int not null default 0,
  due_at timestamptz not null default now(),
  -- Changes with each event that asks for the clean-up: a walk that began before the event keeps the row.
  version uuid not null default gen_random_uuid()
);
create index clean_ups_due on ops.clean_ups (workspace_id, due_at);

create table ops.cadence_slots (
  workspace_id uuid not null,
  account_id uuid not null,
  -- Random: no version comes twice, even if the row was deleted in between.
  version uuid not null,
  -- Of targets whose rows do not show yet what their publishers did.
  entries jsonb not null,
  kept_until timestamptz not null,
  primary key (workspace_id, account_id)
) with (fillfactor = 50);
create index cadence_slots_kept on ops.cadence_slots (kept_until);
