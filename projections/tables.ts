import type { Pool, PoolClient } from 'pg';
import { withMigrationLock } from '#runtime/migrate.ts';
import { forgetParked } from '#runtime/parking.ts';
import { groupOf, type Projection, projections } from './index.ts';
import type { Model } from './model.ts';

/**
 * Tables and views of the read models. A table carries the generation of its projection in its name; the view without
 * it is what everybody reads, and `ops.projections` says which generation it shows.
 */

export const tableOf = (model: Pick<Model, 'name'>, generation: number): string => `read.${model.name}_v${generation}`;

/** An index is known by its place: a new one goes to the end of its model's list. */
const indexOf = (model: Model, generation: number, at: number): string => `${model.name}_v${generation}_${at + 1}`;

const createIndex = (model: Model, generation: number, at: number): string => {
  const { unique, on } = model.indexes[at] ?? { on: '' };
  const kind = unique === true ? 'unique index' : 'index';
  return `create ${kind} if not exists ${indexOf(model, generation, at)} on ${tableOf(model, generation)} ${on}`;
};

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
  const indexes = model.indexes.map((_index, at) => createIndex(model, generation, at));
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
  await forgetParked(tx, groupOf(projection.name, generation));
};

/**
 * Indexes that the live tables do not have yet: they were made before the index was thought of. Not those of another
 * shape, which may lack its columns, and no unique one, which may not fit the rows there are: a rebuild brings both.
 */
const missingIndexes = async (db: Pool | PoolClient): Promise<readonly string[]> => {
  const { rows } = await db.query<{ name: string; shape: number; live: number; there: readonly string[] }>(
    `select name, shape, live, array(select indexname::text from pg_indexes where schemaname = 'read') as there
     from ops.projections`,
  );
  return projections.flatMap(({ name, shape, models }) => {
    const found = rows.find((one) => one.name === name && one.shape === shape);
    if (found === undefined) return [];
    const { live, there } = found;
    return models.flatMap((model) =>
      model.indexes.flatMap(({ unique }, at) =>
        unique === true || there.includes(indexOf(model, live, at)) ? [] : [createIndex(model, live, at)],
      ),
    );
  });
};

/**
 * Creates what is missing; never changes what a running process reads. A projection seen first starts at generation 1.
 * A projector waits while an index is made, readers do not.
 */
export const migrate = async (pool: Pool): Promise<void> => {
  await migrateTables(pool);
  // A transaction for each: one that holds two tables would take them in another order than the projector does.
  for (let left = await missingIndexes(pool); left.length > 0; left = left.slice(1)) {
    await withMigrationLock(pool, async (tx) => {
      // Asked again: another process may have made it, or a rebuild have changed the table, before we had the lock.
      const [first] = await missingIndexes(tx);
      if (first !== undefined) await tx.query(first);
    });
  }
};

const migrateTables = (pool: Pool): Promise<void> =>
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
