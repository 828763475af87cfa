-- What networks said by themselves of people: who took a consent back, who asks for the deletion of data. A row is written before the
-- network gets its answer.

create table ops.network_notices (
  -- Of what was said, under a key of the installation: a repeat has the same, and nobody finds the person by it.
  id bytea primary key,
  -- live or sandbox
  network text not null,
  platform text not null,
  -- deauthorized or delete_data
  kind text not null,
  -- The account, or whose consent it was; null: the notice is done, and nothing of the person is kept here.
  person text,
  -- When it happened, by the network; at the latest when it came.
  said_at timestamptz not null,
  received_at timestamptz not null default now(),
  -- In the address of the page that confirms the deletion; null: there is none.
  code text unique,
  due_at timestamptz not null default now(),
  failures integer not null default 0,
  done_at timestamptz
);

create index network_notices_due on ops.network_notices (due_at) where done_at is null;
create index network_notices_done on ops.network_notices (done_at) where done_at is not null;
