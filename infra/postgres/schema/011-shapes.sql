-- Read models of several shapes beside each other: builds of two shapes each write and read tables of their own.

alter table ops.projections drop constraint projections_pkey;
alter table ops.projections add primary key (name, shape);
-- Null: this shape has no tables that have caught up.
alter table ops.projections alter live drop not null;
-- The models of the newest generation of this shape, by which a build that does not know them drops their tables.
alter table ops.projections add models text[] not null default '{}';

-- Processes that read the views of these shapes, beside the projections, which announce generations.
create table ops.shape_readers (
  instance uuid primary key,
  -- Projection → shape.
  shapes jsonb not null,
  until timestamptz not null
);
