import type { Pool, PoolClient, QueryConfig } from 'pg';
import { forgetParked } from '#runtime/consuming/parking.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { groupOf, type Projection, projections } from '../index.ts';
import { viewOf } from '../shapes.ts';
import type { Index, Model } from './model.ts';

/**
 * Tables and views of the read models. A table carries the generation of its projection in its name, which is never
 * drawn twice. Readers use the view of their shape; `ops.projections` holds the generation that each view shows.
 */

export const tableOf = (model: Pick<Model, 'name'>, generation: number): string => `read.${model.name}_v${generation}`;

const indexOf = (model: Model, generation: number, at: number): string => `${model.name}_v${generation}_${at + 1}`;

const createIndex = (model: Model, generation: number, at: number, { unique, on }: Index): string => {
  const kind = unique === true ? 'unique index' : 'index';
  return `create ${kind} ${indexOf(model, generation, at)} on ${tableOf(model, generation)} ${on}`;
};

/** With its indexes, or with those of them that are `wanted`. */
export const createTable = (model: Model, generation: number, wanted = (_index: Index): boolean => true): string => {
  const table = tableOf(model, generation);
  // All nullable: a placeholder has only its id, workspace and revision.
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
  const searched = model.searched === null ? [] : ['searched text', 'searched_revision int4'];
  const indexes = model.indexes.flatMap((index, at) =>
    wanted(index) ? [createIndex(model, generation, at, index)] : [],
  );
  return [
    `create table ${table} (${[...base, ...own, ...model.generated, ...searched].join(', ')}) with (fillfactor = 85)`,
    ...indexes,
  ].join(';\n');
};

export const createTables = async (tx: PoolClient, projection: Projection, generation: number): Promise<void> => {
  for (const model of projection.models) await tx.query(createTable(model, generation));
};

/** One that refuses rows, and one by which an owner finds the rows that it counts. */
const isForFilling =
  ({ recounts }: Projection, model: Model) =>
  ({ unique, on }: Index): boolean =>
    unique === true ||
    recounts.some(({ children }) => children.some((one) => one.model === model.name && on.startsWith(`(${one.by},`)));

/** Longest that one index of a large table may take, milliseconds. */
const indexMs = 3_600_000;
/** One index at a time on one core: the other cores are for those who write meanwhile. */
const onOneCore = 'begin; set local max_parallel_maintenance_workers = 0';

/**
 * Makes the indexes that `nextGeneration` left out, those alone that are not there: a process that dies in between has made
 * each one whole or not at all, and the next one makes the rest. Then it counts what the planner goes by, so that the first
 * readers of the table need not wait for Postgres to do so. The caller holds the lock of rebuilds.
 */
export const completeIndexes = async (
  pool: Pool,
  { models }: Projection,
  generation: number,
  signal: AbortSignal,
): Promise<void> => {
  const run = (text: string): Promise<void> =>
    inTransaction(
      pool,
      async (tx) => {
        await tx.query({ text, query_timeout: indexMs } as QueryConfig);
        return { commit: true, result: undefined };
      },
      onOneCore,
    );
  for (const model of models) {
    const { rows } = await pool.query<{ name: string }>(
      'select indexrelid::regclass::text as name from pg_index where indrelid = $1::regclass',
      [tableOf(model, generation)],
    );
    const made = new Set(rows.map(({ name }) => name));
    for (const [at, index] of model.indexes.entries()) {
      signal.throwIfAborted();
      if (!made.has(`read.${indexOf(model, generation, at)}`)) await run(createIndex(model, generation, at, index));
    }
    await run(`analyze ${tableOf(model, generation)}`);
  }
};

/** Points the views of a projection's shape at a generation. Readers wait for the transaction and never see half of it. */
export const createViews = async (tx: PoolClient, projection: Projection, generation: number): Promise<void> => {
  for (const model of projection.models) {
    const view = viewOf(model.name, projection.shape);
    await tx.query(`drop view if exists ${view}`);
    await tx.query(`create view ${view} as select * from ${tableOf(model, generation)} where revision >= 0`);
  }
};

export const dropTables = async (tx: PoolClient, projection: Projection, generation: number): Promise<void> => {
  for (const model of projection.models) await tx.query(`drop table if exists ${tableOf(model, generation)}`);
  await forgetParked(tx, groupOf(projection.name, generation));
};

/**
 * Makes the tables and views of projections that the database does not know yet, at generation 1, and changes nothing
 * that is there.
 * @returns projections whose shape is not live: `makeShape` makes their tables
 */
export const migrate = async (pool: Pool, of: readonly Projection[] = projections): Promise<readonly Projection[]> => {
  const { rows } = await pool.query<{ name: string; shape: number; live: number | null }>(
    'select name, shape, live from ops.projections',
  );
  const isKnown = ({ name }: Projection): boolean => rows.some((row) => row.name === name);
  const isLive = ({ name, shape }: Projection): boolean =>
    rows.some((row) => row.name === name && row.shape === shape && row.live !== null);
  if (of.every(isKnown)) return of.filter((one) => !isLive(one));
  await addProjections(pool, of);
  return migrate(pool, of);
};

const addProjections = (pool: Pool, of: readonly Projection[]): Promise<void> =>
  withMigrationLock(pool, async (tx) => {
    const { rows } = await tx.query<{ name: string }>('select name from ops.projections');
    for (const projection of of.filter(({ name }) => !rows.some((row) => row.name === name))) {
      await tx.query('insert into ops.projections (name, shape, live, newest, models) values ($1, $2, 1, 1, $3)', [
        projection.name,
        projection.shape,
        namesOf(projection),
      ]);
      await createTables(tx, projection, 1);
      await createViews(tx, projection, 1);
    }
  });

const namesOf = ({ models }: Projection): readonly string[] => models.map(({ name }) => name);

/**
 * Draws the next generation of a projection and makes its tables, without the indexes that only readers need: a row that
 * comes with all of them costs several times as much, and `completeIndexes` makes them of the full table. It drops tables that no view shows and no process
 * announces: of rebuilds that crashed, and former ones that a process still read when another generation took their
 * place. The caller holds the lock of rebuilds, so none is being filled.
 */
export const nextGeneration = async (tx: PoolClient, projection: Projection): Promise<number> => {
  const { name, shape } = projection;
  const { rows } = await tx.query<{ newest: number }>(
    `insert into ops.projections (name, shape, live, newest, models)
     select $1, $2::int4, null, coalesce(max(newest), 0) + 1, $3::text[] from ops.projections where name = $1
     on conflict (name, shape) do update set newest = excluded.newest, models = excluded.models returning newest`,
    [name, shape, namesOf(projection)],
  );
  const newest = rows[0]?.newest ?? 1;
  const left = await tx.query<{ table: string; generation: number }>(
    `with known as (
       select unnest(models || $2::text[]) as model from ops.projections where name = $1
     ), made as (
       select relname as table, substring(relname from '_v([0-9]{1,9})$')::int4 as generation,
         regexp_replace(relname, '_v[0-9]+$', '') as model
       from pg_class where relnamespace = 'read'::regnamespace and relkind = 'r' and relname ~ '_v[0-9]{1,9}$'
     )
     select distinct 'read.' || made.table as table, generation from made join known using (model)
     where generation < $3
       and not exists (select from ops.projections p where p.name = $1 and p.live = generation)
       and not exists (select from ops.projection_readers r
         where r.name = $1 and r.generation = made.generation and r.until > now())`,
    [name, namesOf(projection), newest],
  );
  for (const { table } of left.rows) await tx.query(`drop table ${table}`);
  for (const generation of new Set(left.rows.map((row) => row.generation)))
    await forgetParked(tx, groupOf(name, generation));
  for (const model of projection.models) {
    await tx.query(createTable(model, newest, isForFilling(projection, model)));
  }
  return newest;
};

/** Whether these are the tables that the newest rebuild of the projection fills: all are there, and no view shows them. */
export const areTables = async (
  pool: Pool,
  { name, shape, models }: Projection,
  generation: number,
  live: number | null,
): Promise<boolean> => {
  if (generation === live) return false;
  const { rows } = await pool.query<{ there: boolean }>(
    `select bool_and(to_regclass(t) is not null) and exists (
       select from ops.projections where name = $1 and shape = $2 and newest = $3) as there
     from unnest($4::text[]) as t`,
    [name, shape, generation, models.map((model) => tableOf(model, generation))],
  );
  return rows[0]?.there === true;
};

/** The generation that the views of a projection's shape show; null while its shape has none. */
export const liveGeneration = async (
  db: Pool | PoolClient,
  { name, shape }: Pick<Projection, 'name' | 'shape'>,
): Promise<number | null> => {
  const { rows } = await db.query<{ live: number | null }>(
    'select live from ops.projections where name = $1 and shape = $2',
    [name, shape],
  );
  return rows[0]?.live ?? null;
};
