-- Tables of the sandbox network. `ledger` has one row for every create call and never changes: it says whether the call
-- made a post (`created`), repeated a keyed call (`repeated`), or was refused. `visible_at` may lie ahead of the
-- answer. A keyed create is unique by its key; any other second create of a target, or of one segment of its thread,
-- makes a second post, and its row names the first one in `duplicate_of`. `media` holds the files with the values that
-- the network found in them; `reply_to` names the post that was replied to. `clock` has one row: how far the network's
-- clock is ahead of ours for all; `workspace_clocks`: how much further for one workspace. `clock_offset_ms` is the sum
-- at the call, so that a later move of the clock adds to the age of the post. `scheduled_for` is the time of a post
-- that was handed to the network's own scheduler: such a post becomes visible at `visible_at` by the network's clock,
-- its offset counts as 0, and the network knows of it from `known_at` on. One that `native_fails` never becomes
-- visible, and its time shows that it will not. `undone` names the scheduled posts that were deleted before their time.
-- `comments` has one row for every comment call, and never changes either.

create schema if not exists sandbox;

create sequence sandbox.post_number;

create table sandbox.containers (
  id           text primary key,
  platform     text not null,
  account_id   text not null,
  target_id    text not null,
  content_hash text not null,
  ready_at     timestamptz not null,
  expires_at   timestamptz not null,
  created_at   timestamptz not null default clock_timestamp()
);

create table sandbox.ledger (
  seq             bigint generated always as identity primary key,
  platform        text not null,
  account_id      text not null,
  target_id       text not null,
  attempt         int not null,
  client_key      text not null,
  keyed           boolean not null,
  content_hash    text not null,
  content         text not null,
  overrides       json not null,
  call_started_at timestamptz not null,
  seen_at         timestamptz not null default clock_timestamp(),
  outcome         text not null check (outcome in ('created', 'repeated', 'refused')),
  visible_at      timestamptz,
  post_id         text,
  permalink       text,
  duplicate_of    text,
  refusal         text,
  media           json,
  segment         int not null default 0,
  reply_to        text,
  clock_offset_ms bigint not null default 0,
  cover_frame_ms  int,
  scheduled_for   timestamptz,
  known_at        timestamptz,
  native_fails    boolean not null default false,
  workspace_id    text
);

create table sandbox.clock (
  one       boolean primary key default true check (one),
  offset_ms bigint not null default 0
);
insert into sandbox.clock default values;

create table sandbox.workspace_clocks (
  workspace_id text primary key,
  offset_ms    bigint not null
);

create table sandbox.removed (
  platform   text not null,
  post_id    text not null,
  removed_at timestamptz not null,
  primary key (platform, post_id)
);

create table sandbox.undone (
  platform  text not null,
  post_id   text not null,
  undone_at timestamptz not null default clock_timestamp(),
  primary key (platform, post_id)
);
create unique index ledger_one_post_a_key on sandbox.ledger (platform, client_key) where keyed and outcome = 'created';
create index ledger_by_target on sandbox.ledger (target_id, seq);
create index ledger_by_key on sandbox.ledger (platform, client_key) where outcome = 'created';

create table sandbox.comments (
  seq             bigint generated always as identity primary key,
  platform        text not null,
  account_id      text not null,
  target_id       text not null,
  post_id         text not null,
  form            text not null,
  content         text not null,
  call_started_at timestamptz not null,
  seen_at         timestamptz not null default clock_timestamp(),
  outcome         text not null check (outcome in ('created', 'refused')),
  comment_id      text,
  refusal         text
);
create index comments_by_target on sandbox.comments (target_id, seq);

create table sandbox.fired (
  target_id text not null,
  fault     text not null,
  times     int not null,
  first_at  timestamptz not null default clock_timestamp(),
  primary key (target_id, fault)
);

create function sandbox.append_only() returns trigger language plpgsql as
  $$ begin raise exception 'the ledger is append-only'; end $$;
create trigger ledger_append_only before update or delete or truncate on sandbox.ledger
  for each statement execute function sandbox.append_only();
create trigger comments_append_only before update or delete or truncate on sandbox.comments
  for each statement execute function sandbox.append_only();
