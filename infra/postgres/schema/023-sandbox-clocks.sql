-- How far the clock of a sandbox workspace is ahead of real time. It only goes ahead. The stream of the workspace has each move;
-- a row says what every search and every process goes by. A workspace without a row has real time.
create table ops.sandbox_clocks (
  workspace_id uuid primary key,
  ahead_ms int8 not null check (ahead_ms > 0),
  moved_at timestamptz not null,
  -- What the last move made due, by kinds of work.
  made_due jsonb not null,
  -- Value of ops.sandbox_clock_version at its last move.
  version int8 not null
);
create index sandbox_clocks_version on ops.sandbox_clocks (version);

-- One row. Every move takes its lock, so versions become visible in their order.
create table ops.sandbox_clock_version (one bool primary key default true check (one), version int8 not null);
insert into ops.sandbox_clock_version (version) values (0);
