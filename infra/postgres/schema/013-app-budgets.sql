-- What apps of operators have taken of what a network allows them in a day or month of its calendar. One row of each budget
-- and window, one of each workspace that took of a shared one, and one of each account where accounts are counted.

create table ops.app_budgets (
  app text not null,
  -- In the network's words: reads, videos.insert
  budget text not null,
  -- Of the window: the first instant of the day or month in the network's zone.
  begins timestamptz not null,
  used bigint not null check (used >= 0),
  primary key (app, budget, begins)
);

create table ops.app_budget_shares (
  app text not null,
  budget text not null,
  begins timestamptz not null,
  workspace_id uuid not null,
  used bigint not null check (used >= 0),
  primary key (app, budget, begins, workspace_id)
);

create table ops.app_budget_members (
  app text not null,
  budget text not null,
  begins timestamptz not null,
  member text not null,
  primary key (app, budget, begins, member)
);

-- Rows of windows that are over have no use: a month, and days for clocks that are behind. They are over by the clock of the
-- database too, since that of a process may be ahead.
create function ops.forget_app_budgets(r_app text, r_budget text, r_begins timestamptz) returns void language sql as $body$
  with old as (select least(now(), r_begins) - interval '40 days' as instant),
    shares as (
      delete from ops.app_budget_shares using old where app = r_app and budget = r_budget and begins < instant),
    members as (
      delete from ops.app_budget_members using old where app = r_app and budget = r_budget and begins < instant)
  delete from ops.app_budgets using old where app = r_app and budget = r_budget and begins < instant;
$body$;

create function ops.take_app_budget(r_app text, r_budget text, r_begins timestamptz, r_workspace uuid,
  r_amount int8, r_limit int8, r_open int8) returns text language plpgsql as $body$
declare
  of_all int8;
  own int8;
begin
  -- Takes the lock of the window, so that the counts of two processes never overlap.
  insert into ops.app_budgets as of_window (app, budget, begins, used) values (r_app, r_budget, r_begins, 0)
    on conflict (app, budget, begins) do update set used = of_window.used returning of_window.used into of_all;
  if of_all + r_amount > r_limit then
    return 'spent';
  end if;
  -- Null: the budget is not shared.
  if r_open is not null then
    select used into own from ops.app_budget_shares
      where app = r_app and budget = r_budget and begins = r_begins and workspace_id = r_workspace;
    if coalesce(own, 0) + of_all + 2 * r_amount > r_open then
      return 'share_spent';
    end if;
    insert into ops.app_budget_shares as share (app, budget, begins, workspace_id, used)
      values (r_app, r_budget, r_begins, r_workspace, r_amount)
      on conflict (app, budget, begins, workspace_id) do update set used = share.used + excluded.used;
  end if;
  update ops.app_budgets set used = used + r_amount where app = r_app and budget = r_budget and begins = r_begins;
  perform ops.forget_app_budgets(r_app, r_budget, r_begins);
  return 'taken';
end
$body$;

create function ops.admit_to_app_budget(r_app text, r_budget text, r_begins timestamptz, r_member text,
  r_limit int8) returns text language plpgsql as $body$
declare
  of_all int8;
begin
  if exists (select from ops.app_budget_members
    where app = r_app and budget = r_budget and begins = r_begins and member = r_member) then
    return 'taken';
  end if;
  insert into ops.app_budgets as of_window (app, budget, begins, used) values (r_app, r_budget, r_begins, 0)
    on conflict (app, budget, begins) do update set used = of_window.used returning of_window.used into of_all;
  -- Another process may have admitted the same one meanwhile.
  if exists (select from ops.app_budget_members
    where app = r_app and budget = r_budget and begins = r_begins and member = r_member) then
    return 'taken';
  end if;
  if of_all >= r_limit then
    return 'spent';
  end if;
  insert into ops.app_budget_members (app, budget, begins, member) values (r_app, r_budget, r_begins, r_member);
  update ops.app_budgets set used = used + 1 where app = r_app and budget = r_budget and begins = r_begins;
  perform ops.forget_app_budgets(r_app, r_budget, r_begins);
  return 'taken';
end
$body$;

-- What apps read in a month is one of these budgets. Processes of before go on counting in it: they call this function.
insert into ops.app_budgets (app, budget, begins, used)
  select app, 'reads', (month || '-01')::timestamp at time zone 'UTC', used from ops.app_reads
  where month >= to_char(now() at time zone 'UTC' - interval '8 days', 'YYYY-MM');
insert into ops.app_budget_shares (app, budget, begins, workspace_id, used)
  select app, 'reads', (month || '-01')::timestamp at time zone 'UTC', workspace_id, used from ops.app_read_shares;

create or replace function ops.take_app_reads(r_app text, r_month text, r_kept text, r_workspace uuid,
  r_reads int8, r_monthly int8, r_open int8) returns text language sql as $body$
  select case answer when 'spent' then 'month_spent' else answer end
  from ops.take_app_budget(r_app, 'reads', (r_month || '-01')::timestamp at time zone 'UTC', r_workspace,
    r_reads, r_monthly, r_open) as answer;
$body$;
