-- Calls of the sandbox network that give a published post what follows it, such as its cover: one row for each call, which never
-- changes. The last one that was `done` is what the network shows.

create table sandbox.after_steps (
  seq             bigint generated always as identity primary key,
  platform        text not null,
  account_id      text not null,
  target_id       text not null,
  post_id         text not null,
  step            text not null,
  -- Of the file.
  media_id        text not null,
  sha256          text not null,
  call_started_at timestamptz not null,
  seen_at         timestamptz not null default clock_timestamp(),
  outcome         text not null check (outcome in ('done', 'refused')),
  refusal         text
);
create index after_steps_by_target on sandbox.after_steps (target_id, seq);
create trigger after_steps_append_only before update or delete or truncate on sandbox.after_steps
  for each statement execute function sandbox.append_only();
