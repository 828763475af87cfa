/**
 * Numbered files of Postgres. Each has a transaction of its own, with its row in `schema_versions`; so a process that
 * dies between two files leaves a database that the next start completes.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { tablesLock, withTableLock } from '#contracts/base/migration.ts';
import {
  type AppliedFile,
  checksumOf,
  planFor,
  type SchemaFile,
  type SchemaPlan,
} from '#contracts/base/numbered-files.ts';
import { SetupError } from '#contracts/ports/setup-error.ts';

/** Files of one Postgres schema, which also keeps the table of those that were carried out. */
export interface NumberedSchema {
  /** A name that passed `checkSchemaName`. */
  readonly schema: string;
  /** Key of the advisory lock under which a process carries them out; the same in every release. */
  readonly lock: number | string;
  /** By their numbers. */
  readonly files: readonly SchemaFile[];
}

/** The gap after a file, before the next, in which a test kills the process. */
export type SchemaGap = 'schema.file';

export interface SchemaOptions {
  /** Receives a line about a database that a newer build has changed. */
  readonly warn?: (line: string) => void;
  readonly faultPoint?: (name: SchemaGap) => void;
}

const folder = path.join(import.meta.dirname, 'schema');

const readFiles = (): readonly SchemaFile[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({
      number: Number(name.slice(0, 3)),
      name: name.slice(0, -'.sql'.length),
      sql: readFileSync(path.join(folder, name), 'utf8'),
    }));

let known: NumberedSchema | undefined;

/** The tables of every process: all except the events and the generated tables of the read models. */
export const operationalSchema = (): NumberedSchema => {
  known ??= { schema: 'ops', lock: tablesLock, files: readFiles() };
  return known;
};

/** @throws SetupError when a file that was carried out is another one here */
const planOf = ({ schema, files }: NumberedSchema, applied: readonly AppliedFile[]): SchemaPlan => {
  const plan = planFor(files, applied, `${schema}.schema_versions`);
  if (plan.mismatch !== null) throw new SetupError(`DATABASE_URL: ${plan.mismatch}`);
  return plan;
};

/** SQLSTATEs of a database without the table: nothing was carried out. */
const lacksTable: readonly unknown[] = ['42P01', '3F000'];

const appliedIn = async (db: Pick<pg.Pool, 'query'>, schema: string): Promise<readonly AppliedFile[]> => {
  try {
    const { rows } = await db.query<AppliedFile>(
      `select number, name, checksum from ${schema}.schema_versions order by number`,
    );
    return rows;
  } catch (error) {
    if (lacksTable.includes((error as { code?: unknown }).code)) return [];
    throw error;
  }
};

/** Of a database with tables that lack their numbers: only builds before the first release made such tables. */
export const formerTables =
  'the database holds tables that no release made, as builds of 0.1 did, and no release reads them';

/** @throws SetupError when the schema has tables, though no file was carried out in it */
const requireNoTables = async (db: Pick<pg.Pool, 'query'>, schema: string): Promise<void> => {
  const { rowCount } = await db.query(
    `select from pg_class where relnamespace = to_regnamespace($1) and relkind in ('r', 'p')
       and relname <> 'schema_versions' limit 1`,
    [schema],
  );
  if (rowCount === 0) return;
  throw new SetupError(`DATABASE_URL: ${formerTables}. Give every process a new, empty database (UPGRADE.md).`);
};

/**
 * The files that `migrateSchema` would carry out now. Writes nothing.
 * @throws SetupError as `migrateSchema`
 */
export const pendingFiles = async (
  pool: pg.Pool,
  numbered: NumberedSchema = operationalSchema(),
): Promise<readonly SchemaFile[]> => {
  const applied = await appliedIn(pool, numbered.schema);
  if (applied.length === 0) await requireNoTables(pool, numbered.schema);
  return planOf(numbered, applied).pending;
};

/** Carries out the next file, unless another process has done so meanwhile. @returns whether more follow */
const carryOutNext = async (pool: pg.Pool, numbered: NumberedSchema): Promise<boolean> => {
  const { schema } = numbered;
  let more = false;
  await withTableLock(pool, numbered.lock, async (tx) => {
    await tx.query(`
      create schema if not exists ${schema};
      create table if not exists ${schema}.schema_versions (
        number int4 primary key,
        name text not null,
        checksum text not null,
        applied_at timestamptz not null default now()
      )`);
    const [file, ...rest] = planOf(numbered, await appliedIn(tx, schema)).pending;
    more = rest.length > 0;
    if (file === undefined) return;
    if (file.number === 1) await requireNoTables(tx, schema);
    await tx.query(file.sql);
    await tx.query(`insert into ${schema}.schema_versions (number, name, checksum) values ($1, $2, $3)`, [
      file.number,
      file.name,
      checksumOf(file),
    ]);
  });
  return more;
};

/**
 * Brings the tables to this build. An up-to-date database costs one read. Of several processes one carries a file out
 * and the others wait. A database of a newer build stays as it is: its files leave former tables usable.
 * @throws SetupError when a file that was carried out is another one here, and before anything is changed in a database
 * with tables that no release made; else as `withTableLock`
 */
export const migrateSchema = async (
  pool: pg.Pool,
  { warn, faultPoint }: SchemaOptions = {},
  numbered: NumberedSchema = operationalSchema(),
): Promise<void> => {
  const { pending, newer } = planOf(numbered, await appliedIn(pool, numbered.schema));
  if (newer.length > 0) {
    const names = newer.map(({ name }) => name).join(', ');
    warn?.(`a newer build has changed the tables of ${numbered.schema} (${names}): they stay as they are`);
  }
  for (let more = pending.length > 0; more; ) {
    more = await carryOutNext(pool, numbered);
    faultPoint?.('schema.file');
  }
};
