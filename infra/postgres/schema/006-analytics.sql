-- Records of the tables in ClickHouse.

create sequence ops.analytics_recounts;
create sequence ops.analytics_marks;

create table ops.analytics_versions (
  one bool primary key default true check (one),
  live int4 not null,
  -- Highest version ever begun.
  newest int4 not null
);
insert into ops.analytics_versions (live, newest) values (1, 1);

create table ops.analytics_readers (
  instance uuid primary key,
  version int4 not null,
  until timestamptz not null
);

-- Days with observations.
create table ops.analytics_days (
  version int4 not null,
  workspace_id uuid not null,
  day date not null,
  primary key (version, workspace_id, day)
);

-- Days whose grains do not hold all observations yet. A mark that is set again during the count stays.
create table ops.analytics_marked (
  version int4 not null,
  workspace_id uuid not null,
  kind text not null check (kind in ('post', 'gains', 'account')),
  day date not null,
  -- Its place in the queue.
  since int8 not null,
  mark int8 not null,
  primary key (version, workspace_id, kind, day)
);
create index analytics_marked_since on ops.analytics_marked (version, since, workspace_id);
create index analytics_marked_of on ops.analytics_marked (version, workspace_id, since);

-- Workspaces whose post days after this one must be marked. As marks, hundreds of days a workspace would be written
-- again with each batch while a process catches up with the log.
create table ops.analytics_late (
  version int4 not null,
  workspace_id uuid not null,
  after date not null,
  primary key (version, workspace_id)
);

-- The newest row inserted into a version, of posts and of accounts; held has the newest rows of up to three earlier
-- minutes. A ClickHouse that was restored to an earlier day and got rows since then lacks one of them.
create table ops.analytics_highest (
  version int4 not null,
  post bool not null,
  position int8 not null,
  since timestamptz not null,
  held jsonb[] not null,
  primary key (version, post)
);

-- The rule by which the days of a version were counted, and how far the days of an earlier rule are marked.
create table ops.analytics_rules (
  version int4 primary key,
  rule int4 not null,
  workspace_id uuid not null default '00000000-0000-0000-0000-000000000000',
  day date not null default '-infinity'
);
