-- Networks that no longer answer the version of their API that this installation asks for. Their targets wait; processes that
-- ask for another version pay no heed.

create table ops.network_rests (
  -- live/linkedin
  network text not null,
  -- What the processes asked for; '' where their calls name none.
  version text not null,
  -- When the network first said so.
  since timestamptz not null,
  -- When it is asked again: it may have been wrong.
  until timestamptz not null,
  -- In the network's words.
  said text not null,
  primary key (network, version)
);

-- The sandbox's versions that have ended: tests and the tour end them.
create table sandbox.ended_versions (
  platform text not null,
  version text not null,
  primary key (platform, version)
);
