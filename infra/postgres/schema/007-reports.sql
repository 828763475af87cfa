-- Runs of reports, schedules, and how long exports live.

create table ops.report_jobs (
  -- The run; for a job that deletes exports of all runs, the report.
  id uuid primary key,
  report_id uuid not null,
  workspace_id uuid not null,
  -- Tries that began and did not end in order.
  attempts int not null default 0,
  due_at timestamptz not null default now(),
  -- Blobs written for it. When it is done, the worker deletes those that its stream does not name.
  written text[] not null default '{}',
  -- Changes with each event that asks for the job: work that began before the event keeps the row.
  version uuid not null default gen_random_uuid()
);
create index report_jobs_due on ops.report_jobs (workspace_id, due_at);

create table ops.report_schedules (
  report_id uuid primary key,
  workspace_id uuid not null,
  -- The report runs at the first instant of its schedule after this one.
  after timestamptz not null,
  -- That instant; null: unknown since its definition or the zone changed.
  due_at timestamptz,
  -- Changes with each event that may change the schedule: a next run computed before it is void.
  version uuid not null default gen_random_uuid(),
  -- No process reads it before this instant.
  look_at timestamptz not null default now()
);
create index report_schedules_due on ops.report_schedules (due_at);
create index report_schedules_unknown on ops.report_schedules (look_at) where due_at is null;
create index report_schedules_workspace on ops.report_schedules (workspace_id);
create index report_schedules_review on ops.report_schedules (workspace_id, report_id);

-- Clients that a report is or was about, because runs about a former one may exist.
create table ops.report_subjects (
  client_id uuid not null,
  report_id uuid not null,
  workspace_id uuid not null,
  primary key (client_id, report_id)
);
create index report_subjects_report on ops.report_subjects (report_id);

-- Workspaces and clients whose reports are to be looked at.
create table ops.report_reviews (
  -- The workspace, or a client of it.
  id uuid primary key,
  workspace_id uuid not null,
  erased boolean not null,
  -- The last report that the walk has passed; null: none.
  after uuid,
  noted_at timestamptz not null default now()
);
create index report_reviews_draw on ops.report_reviews (workspace_id, noted_at);

-- Completed runs until their exports are deleted.
create table ops.report_exports (
  run_id uuid primary key,
  report_id uuid not null,
  workspace_id uuid not null,
  ends_at timestamptz not null
);
create index report_exports_end on ops.report_exports (ends_at);

-- Runs about to be requested: they count before the read model shows them.
create table ops.report_run_places (
  run_id uuid primary key,
  report_id uuid not null,
  workspace_id uuid not null,
  taken_at timestamptz not null default now()
);
create index report_run_places_workspace on ops.report_run_places (workspace_id);
