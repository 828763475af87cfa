import type { Pool, PoolClient } from 'pg';
import { forgetParked } from '#runtime/consuming/parking.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { groupOf, type Projection, projections } from '../index.ts';
import type { Index, Model } from './model.ts';

/**
 * Tables and views of the read models. A table carries the generation of its projection in its name. Readers use the
 * view, which has no number; `ops.projections` holds the generation that the view shows.
 */

export const tableOf = (model: Pick<Model, 'name'>, generation: number): string => `read.${model.name}_v${generation}`;

/** An index is identified by its place in the list: append a new one at the end of its model's list. */
const indexOf = (model: Model, generation: number, at: number): string => `${model.name}_v${generation}_${at + 1}`;

const createIndex = (model: Model, generation: number, at: number, { unique, on }: Index): string => {
  const kind = unique === true ? 'unique index' : 'index';
  return `create ${kind} if not exists ${indexOf(model, generation, at)} on ${tableOf(model, generation)} ${on}`;
};

/** Columns of a model with a searched text; null on rows that a build without them wrote. */
const searchedColumns = [
  ['searched', 'text'],
  ['searched_revision', 'int4'],
] as const;
const defined = (columns: readonly (readonly [name: string, type: string])[]): readonly string[] =>
  columns.map(([name, type]) => `${name} ${type}`);

/** The columns that rows of another build may lack: they read as null there. */
const nullableColumns = (model: Model): readonly (readonly [name: string, type: string])[] => [
  ...Object.entries(model.columns as Record<string, string>).filter(([name]) => model.counted[name] === undefined),
  ...(model.searched === null ? [] : searchedColumns),
];

const createTable = (model: Model, generation: number): string => {
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
  const searched = model.searched === null ? [] : defined(searchedColumns);
  const indexes = model.indexes.map((index, at) => createIndex(model, generation, at, index));
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

/** Points the views at a generation. Readers wait for the transaction and never see half of the switch. */
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
  /** Indexes of its tables, and the columns of its tables and views as `table.column`. */
  readonly existing: readonly string[];
}

/** Each begin of a process asks this: the catalog's views, or a look at all tables, would cost milliseconds of processor time. */
const liveOf = async (db: Pool | PoolClient, of: readonly Projection[]): Promise<readonly Live[]> => {
  const owned = of.flatMap(({ name: owner, models }) => models.map(({ name }) => ({ name, owner })));
  const { rows } = await db.query<Live>(
    `select p.name, p.shape, p.live, array(
       with own as (select m from unnest($2::text[], $3::text[]) as one (m, owner) where owner = p.name)
       select i.relname::text from pg_class t join pg_index x on x.indrelid = t.oid join pg_class i on i.oid = x.indexrelid
         where t.relnamespace = to_regnamespace('read')
           and t.relname = any (array(select (m || '_v' || p.live)::name from own))
       union all select t.relname || '.' || a.attname from pg_class t
         join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
         where t.relnamespace = to_regnamespace('read')
           and t.relname = any (array(select unnest(array[m, m || '_v' || p.live])::name from own))
     ) as existing from ops.projections p where p.name = any ($1)`,
    [of.map(({ name }) => name), owned.map(({ name }) => name), owned.map(({ owner }) => owner)],
  );
  return rows;
};

type Lacking = (model: Model, live: Live) => readonly string[];

/** Statements that add what the live tables lack. Tables of another shape are left out: a rebuild makes them whole. */
const missing = (found: readonly Live[], of: readonly Projection[], lacking: Lacking): readonly string[] =>
  of.flatMap(({ name, shape, models }) => {
    const live = found.find((one) => one.name === name && one.shape === shape);
    return live === undefined ? [] : models.flatMap((model) => lacking(model, live));
  });

/**
 * Unique indexes are left out: existing rows may violate them. While an index is made a projector waits and readers do
 * not.
 */
const missingIndexes = (model: Model, { live, existing }: Live): readonly string[] =>
  model.indexes.flatMap((index, at) => {
    const name = indexOf(model, live, at);
    const exists = existing.includes(name);
    return index.unique === true || exists ? [] : [createIndex(model, live, at, index)];
  });

/**
 * The table of a model that another build has not, and its view. It starts empty: events of its streams that such a
 * build passed over come with a rebuild.
 */
const missingTable = (model: Model, { live, existing }: Live): readonly string[] =>
  existing.includes(`${model.name}_v${live}.id`)
    ? []
    : [`${createTable(model, live)};\ndrop view if exists read.${model.name};\ncreate ${viewOf(model, live)}`];

/**
 * The columns have no default, so no row is rewritten, and a build without them goes on writing the table. The view
 * is locked before its table, as readers do: in the other order the two would deadlock.
 */
const missingColumns = (model: Model, { live, existing }: Live): readonly string[] => {
  const lacking = nullableColumns(model).filter(([name]) => !existing.includes(`${model.name}.${name}`));
  if (lacking.length === 0) return [];
  const added = defined(lacking).map((column) => `add column if not exists ${column}`);
  return [
    `lock table read.${model.name} in access exclusive mode;
     alter table ${tableOf(model, live)} ${added.join(', ')};
     create or replace ${viewOf(model, live)}`,
  ];
};

/**
 * One transaction each: a transaction that holds two tables would take them in another order than the projector does.
 */
const addMissing = async (pool: Pool, of: readonly Projection[], lacking: Lacking): Promise<void> => {
  for (let left = missing(await liveOf(pool, of), of, lacking); left.length > 0; left = left.slice(1)) {
    await withMigrationLock(pool, async (tx) => {
      // Checked again under the lock: another process may have made it, or a rebuild may have replaced the table.
      const [first] = missing(await liveOf(tx, of), of, lacking);
      if (first !== undefined) await tx.query(first);
    });
  }
};

/**
 * For tables that a build without these columns or models made; a rebuild by that build may bring such a table live
 * at any time.
 */
export const addColumns = async (pool: Pool, of: readonly Projection[] = projections): Promise<void> => {
  await addMissing(pool, of, missingTable);
  await addMissing(pool, of, missingColumns);
};

/** Names of the projections that `addColumns` has something to add to. */
export const lackingColumns = async (pool: Pool, of: readonly Projection[]): Promise<ReadonlySet<string>> => {
  const found = await liveOf(pool, of);
  const isWhole = (one: Projection): boolean =>
    [missingTable, missingColumns].every((lacking) => missing(found, [one], lacking).length === 0);
  return new Set(of.filter((one) => !isWhole(one)).map(({ name }) => name));
};

/**
 * Creates missing tables and views and never changes what a running process reads. A new projection starts at
 * generation 1.
 */
export const migrate = async (pool: Pool): Promise<void> => {
  if ((await unknown(pool)).length > 0) await addProjections(pool);
  const found = await liveOf(pool, projections);
  const all = [missingTable, missingColumns, missingIndexes];
  if (all.every((lacking) => missing(found, projections, lacking).length === 0)) return;
  await addColumns(pool);
  await addMissing(pool, projections, missingIndexes);
};

/** Projections of which the database has no tables. */
const unknown = async (db: Pool | PoolClient): Promise<readonly Projection[]> => {
  const { rows } = await db.query<{ name: string }>('select name from ops.projections');
  return projections.filter(({ name }) => !rows.some((row) => row.name === name));
};

const addProjections = (pool: Pool): Promise<void> =>
  withMigrationLock(pool, async (tx) => {
    for (const projection of await unknown(tx)) {
      await tx.query('insert into ops.projections (name, live, shape, newest) values ($1, 1, $2, 1)', [
        projection.name,
        projection.shape,
      ]);
      await createTables(tx, projection, 1);
      await createViews(tx, projection, 1);
    }
  });
