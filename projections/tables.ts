import type { Pool, PoolClient } from 'pg';
import { withMigrationLock } from '#runtime/migrate.ts';
import { type Projection, projections } from './index.ts';
import type { Model } from './model.ts';

/**
 * Tables and views of the read models. A table carries the generation of its projection in its name; the view without
 * it is what everybody reads, and `ops.projections` says which generation it shows.
 */

export const tableOf = (model: Pick<Model, 'name'>, generation: number): string => `read.${model.name}_v${generation}`;

const createTable = (model: Model, generation: number): string => {
  const table = tableOf(model, generation);
  // Nullable throughout: a placeholder has no more than its id, workspace and revision.
  const own = Object.entries(model.columns).map(([name, type]) => {
    const counted = model.counted[name];
    return counted === undefined ? `${name} ${type}` : `${name} ${type} default ${counted}`;
  });
  const base = [
    'id uuid primary key',
    'workspace_id uuid not null',
    'revision int4 not null',
    'created_at timestamptz',
    'updated_at timestamptz',
  ];
  const indexes = model.indexes.map(
    ({ unique, on }, at) =>
      `create ${unique === true ? 'unique ' : ''}index if not exists ${model.name}_v${generation}_${at + 1} on ${table} ${on}`,
  );
  return [
    `create table if not exists ${table} (${[...base, ...own, ...model.generated].join(', ')}) with (fillfactor = 85)`,
    ...indexes,
  ].join(';\n');
};

export const createTables = async (tx: PoolClient, projection: Projection, generation: number): Promise<void> => {
  for (const model of projection.models) await tx.query(createTable(model, generation));
};

/** Points the views at a generation. Readers wait for the transaction; none sees half of it. */
export const createViews = async (tx: PoolClient, projection: Projection, generation: number): Promise<void> => {
  for (const model of projection.models) {
    const table = tableOf(model, generation);
    await tx.query(`drop view if exists read.${model.name}`);
    await tx.query(`create view read.${model.name} as select * from ${table} where revision >= 0`);
  }
};

export const dropTables = async (tx: PoolClient, projection: Projection, generation: number): Promise<void> => {
  for (const model of projection.models) await tx.query(`drop table if exists ${tableOf(model, generation)}`);
};

/** Creates what is missing; never changes what a running process reads. A projection seen first starts at generation 1. */
export const migrate = async (pool: Pool): Promise<void> =>
  withMigrationLock(pool, async (tx) => {
    await tx.query(`
      create schema if not exists ops;
      create schema if not exists read;
      create table if not exists ops.projections (
        name text primary key,
        -- Generation of the tables that the views show.
        live int4 not null,
        -- Shape of the code that made that generation.
        shape int4 not null,
        -- Highest generation ever begun.
        newest int4 not null
      );
      create table if not exists ops.projection_readers (
        instance uuid not null,
        name text not null,
        generation int4 not null,
        until timestamptz not null,
        primary key (instance, name)
      )`);
    for (const projection of projections) {
      const { rowCount } = await tx.query(
        'insert into ops.projections (name, live, shape, newest) values ($1, 1, $2, 1) on conflict do nothing',
        [projection.name, projection.shape],
      );
      if (rowCount === 0) continue;
      await createTables(tx, projection, 1);
      await createViews(tx, projection, 1);
    }
  });
