-- Workspaces that were moved to another installation or come from one, and those whose end is under way.

-- Nothing of these is published, and no call is answered.
create table ops.closed_workspaces (
  -- The live workspace, or its sandbox twin.
  workspace_id uuid primary key,
  -- erasing: it has begun, and nothing brings it back.
  why text not null check (why in ('moved', 'deleting', 'erasing')),
  since timestamptz not null default now(),
  set_by text not null,
  -- When its data may be erased; null: it is moved.
  erase_at timestamptz
);

-- What another installation had, and this one has taken over.
create table ops.workspace_moves (
  workspace_id uuid primary key,
  -- Of the export's manifest, SHA-256: an import that died goes on with the same export alone.
  digest text not null,
  begun_at timestamptz not null default now(),
  -- Events of the feed that came with it.
  size int8 not null,
  -- Of them those that are in the store for certain.
  appended int8 not null default 0,
  -- Of the last event that came with it; null: the import has not ended, and no process starts.
  position int8,
  imported_at timestamptz,
  -- What joins the checkpoints of the origin to those of this installation, the newest first: they are signed, and each names the keys that signed before.
  chain jsonb not null default '[]'
);

-- When the origin had the event: the store here took all of them on the day of the import.
create table ops.moved_times (
  workspace_id uuid not null,
  sequence int8 not null,
  at timestamptz not null,
  primary key (workspace_id, sequence)
);

-- What of a workspace has been erased, and the receipt once nothing is left.
create table ops.workspace_erasures (
  workspace_id uuid primary key,
  begun_at timestamptz not null default now(),
  -- Steps that are done, of ErasureStep of services/admin/erasure.ts.
  done text[] not null default '{}',
  -- By what was erased: how much.
  counts jsonb not null default '{}',
  receipt text
);
