-- Rebuilds of read models and analytics that were asked for, or that a changed shape needs, and that have not switched: how
-- far each has read. The process that holds the lock of its name runs it.
create table ops.rebuilds (
  name text primary key,
  shape int4 not null,
  -- Of the tables that it fills; null: it has made none.
  generation int4,
  reason text not null check (reason in ('asked', 'all', 'shape', 'lost')),
  began_at timestamptz not null default now(),
  -- Its tables hold the store up to here; null: nothing of it.
  position int8,
  -- Where the store ended when the reading began.
  up_to int8,
  events int8 not null default 0,
  -- When the store took the last event that was read.
  read_to timestamptz,
  -- The store is read; what followed comes from the log.
  is_following bool not null default false
);
