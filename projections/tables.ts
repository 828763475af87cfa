import type { Pool, PoolClient } from 'pg';
import { forgetParked } from '#runtime/consuming/parking.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
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

/** Of a model with a text that is searched; null on rows that a release without them wrote. */
const searchedColumns = ['searched text', 'searched_revision int4'];

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
  const searched = model.searched === null ? [] : searchedColumns;
  const indexes = model.indexes.map((_index, at) => createIndex(model, generation, at));
  return [
    `create table if not exists ${table} (${[...base, ...own, ...model.generated, ...searched].join(', ')}) with (fillfactor = 85)`,
    ...indexes,
  ].join(';\n');
};

export const createTables = async (tx: PoolClient, projection: Projection, generation: number): Promise<void> => {
  for (const model of projection.models) await tx.query(createTable(model, generation));
};

const viewOf = (model: Model, generation: number): string =>
  `view read.${model.name} as select * from ${tableOf(model, generation)} where revision >= 0`;

/** Points the views at a generation. Readers wait for the transaction; none sees half of it. */
export const createViews = async (tx: PoolClient, projection: Projection, generation: number): Promise<void> => {
  for (const model of projection.models) {
    await tx.query(`drop view if exists read.${model.name}`);
    await tx.query(`create ${viewOf(model, generation)}`);
  }
};

export const dropTables = async (tx: PoolClient, projection: Projection, generation: number): Promise<void> => {
  for (const model of projection.models) await tx.query(`drop table if exists ${tableOf(model, generation)}`);
  await forgetParked(tx, groupOf(projection.name, generation));
};

interface Live {
  readonly name: string;
  readonly shape: number;
  readonly live: number;
  /** Indexes in the schema, and the views that show what is searched. */
  readonly there: readonly string[];
}

/** Statements for what the live tables lack. Tables of another shape are left out: a rebuild brings them all of it. */
const missing = async (
  db: Pool | PoolClient,
  lacking: (model: Model, live: Live) => readonly string[],
): Promise<readonly string[]> => {
  const { rows } = await db.query<Live>(
    `select name, shape, live, array(
       select indexname::text from pg_indexes where schemaname = 'read'
       union all select table_name::text from information_schema.columns
         where table_schema = 'read' and column_name = 'searched_revision'
     ) as there from ops.projections`,
  );
  return projections.flatMap(({ name, shape, models }) => {
    const live = rows.find((one) => one.name === name && one.shape === shape);
    return live === undefined ? [] : models.flatMap((model) => lacking(model, live));
  });
};

/** Unique indexes are left out: the rows may not fit them. A projector waits while an index is made, readers do not. */
const missingIndexes = (model: Model, { live, there }: Live): readonly string[] =>
  model.indexes.flatMap(({ unique }, at) =>
    unique === true || there.includes(indexOf(model, live, at)) ? [] : [createIndex(model, live, at)],
  );

/**
 * Columns without a default: no row is written anew. The view is locked before its table, as a reader does it: the other
 * way round the two would wait for each other.
 */
const missingSearched = (model: Model, { live, there }: Live): readonly string[] => {
  if (model.searched === null || there.includes(model.name)) return [];
  const added = searchedColumns.map((column) => `add column if not exists ${column}`).join(', ');
  return [
    `lock table read.${model.name} in access exclusive mode;
     alter table ${tableOf(model, live)} ${added};
     create or replace ${viewOf(model, live)}`,
  ];
};

/** A transaction for each: one that holds two tables would take them in another order than the projector does. */
const addMissing = async (pool: Pool, lacking: typeof missingIndexes): Promise<void> => {
  for (let left = await missing(pool, lacking); left.length > 0; left = left.slice(1)) {
    await withMigrationLock(pool, async (tx) => {
      // Asked again: another process may have made it, or a rebuild have changed the table, before we had the lock.
      const [first] = await missing(tx, lacking);
      if (first !== undefined) await tx.query(first);
    });
  }
};

/** For tables that a release without these columns made; its rebuild may bring such a table live at any time. */
export const addSearched = (pool: Pool): Promise<void> => addMissing(pool, missingSearched);

/** Creates what is missing; never changes what a running process reads. A projection seen first starts at generation 1. */
export const migrate = async (pool: Pool): Promise<void> => {
  await migrateTables(pool);
  await addSearched(pool);
  await addMissing(pool, missingIndexes);
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
