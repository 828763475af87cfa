import type { PoolClient } from 'pg';
import type { Base, ColumnType, Model } from './model.ts';
import { tableOf } from './tables.ts';

/**
 * Writes all changed rows of a table in one statement: each column is one array parameter. Rows are ordered by id, so
 * two transactions that lock the same rows wait for each other and never deadlock.
 */

/** A row to write: a folded row, or a placeholder that has only its base members. */
export type Written = Pick<Base, 'id' | 'workspace_id' | 'revision'> & { readonly [column: string]: unknown };

interface Column {
  readonly name: string;
  /** Element type of the array parameter, and the cast from it where the types differ. */
  readonly element: string;
  readonly cast: string;
  readonly encode: (value: unknown) => string;
}

/** Postgres stores neither NUL nor lone surrogates: a read model shows U+FFFD for them. */
const storable = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text);
const unstorable = /(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})/g;
const storableJson = (json: string): string => (json.includes('\\u') ? json.replace(unstorable, '$1\\ufffd') : json);

const quoted = (text: string): string => `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`;
const plain = (value: unknown): string => String(value);
const text = (value: unknown): string => quoted(storable(String(value)));
const json = (value: unknown): string => quoted(storableJson(JSON.stringify(value)));
const list = (value: unknown): string => quoted(`{${(value as readonly unknown[]).map(text).join(',')}}`);

const encodings: Readonly<Record<ColumnType, Omit<Column, 'name'>>> = {
  uuid: { element: 'uuid', cast: '', encode: plain },
  text: { element: 'text', cast: '', encode: text },
  int4: { element: 'int4', cast: '', encode: plain },
  bool: { element: 'bool', cast: '', encode: plain },
  timestamptz: { element: 'timestamptz', cast: '', encode: plain },
  jsonb: { element: 'text', cast: '::jsonb', encode: json },
  'text[]': { element: 'text', cast: '::text[]', encode: list },
};

const base: readonly (readonly [string, ColumnType])[] = [
  ['id', 'uuid'],
  ['workspace_id', 'uuid'],
  ['revision', 'int4'],
  ['created_at', 'timestamptz'],
  ['updated_at', 'timestamptz'],
];

const columnsOf = (model: Model, counted: boolean): readonly Column[] => {
  const own = (Object.entries(model.columns) as [string, ColumnType][]).filter(
    ([name]) => counted || model.counted[name] === undefined,
  );
  return [...base, ...own].map(([name, type]) => ({ name, ...encodings[type] }));
};

interface Statement {
  readonly name: string;
  readonly text: string;
  readonly columns: readonly Column[];
}

/** `insert into … select …` of the rows in the parameters, with the searched text. */
const insertion = (model: Model, generation: number, columns: readonly Column[]): string => {
  const names = columns.map(({ name }) => name).join(', ');
  const given = `unnest(${columns.map(({ element }, i) => `$${i + 1}::${element}[]`).join(', ')}) as g (${names})`;
  const cast = `select ${columns.map((column) => `${column.name}${column.cast} as ${column.name}`).join(', ')} from ${given}`;
  const table = tableOf(model, generation);
  if (model.searched === null) return `insert into ${table} as t (${names}) ${cast}`;
  // `offset 0` keeps the inner select separate: otherwise Postgres would parse the JSON once for each use.
  return `insert into ${table} as t (${names}, searched, searched_revision)
      select ${names}, ${model.searched.text(model.searched.of)}, revision from (${cast} offset 0) as r`;
};

/** On a conflict: a row whose text has another revision was written by a build that keeps no text. */
const searchedKept = ({ searched }: Model): string =>
  searched === null
    ? ''
    : `, searched_revision = excluded.revision, searched = case
        when excluded.${searched.of} is not null then excluded.searched
        when t.searched_revision = t.revision then t.searched
        else ${searched.text(`t.${searched.of}`)} end`;

const build = (model: Model, generation: number): Statement => {
  const columns = columnsOf(model, false);
  const names = columns.map(({ name }) => name);
  const kept = (name: string): string =>
    model.cold.includes(name) ? `${name} = coalesce(excluded.${name}, t.${name})` : `${name} = excluded.${name}`;
  return {
    name: `upsert-${model.name}-${generation}`,
    columns,
    text: `
      ${insertion(model, generation, columns)}
      on conflict (id) do update set ${names
        .filter((name) => name !== 'id')
        .map(kept)
        .join(', ')}${searchedKept(model)}
      where excluded.revision > t.revision`,
  };
};

/**
 * Inserts new rows with their counted columns. A row that exists, even as a placeholder, is left to the other
 * statements.
 */
const buildInsert = (model: Model, generation: number): Statement => {
  const columns = columnsOf(model, true);
  return {
    name: `insert-${model.name}-${generation}`,
    columns,
    text: `
      ${insertion(model, generation, columns)}
      on conflict (id) do nothing
      returning id`,
  };
};

const byId = (a: Written, b: Written): number => (a.id < b.id ? -1 : 1);

/** One array literal per column. */
const valuesOf = (columns: readonly Column[], rows: readonly Written[]): string[] =>
  columns.map(({ name, encode }) => {
    let literal = '{';
    for (const row of rows) {
      const value = row[name];
      if (literal.length > 1) literal += ',';
      literal += value === null || value === undefined ? 'NULL' : encode(value);
    }
    return `${literal}}`;
  });

/** Statements are built once per table. */
export class Upserts {
  readonly #made = new Map<string, Statement>();
  readonly #inserts = new Map<string, Statement>();

  /** A row at or above the given revision keeps its values but is locked all the same. */
  async write(tx: PoolClient, model: Model, generation: number, rows: readonly Written[]): Promise<void> {
    if (rows.length === 0) return;
    const key = `${model.name}/${generation}`;
    const statement = this.#made.get(key) ?? build(model, generation);
    this.#made.set(key, statement);
    const values = valuesOf(statement.columns, [...rows].sort(byId));
    await tx.query({ name: statement.name, text: statement.text, values });
  }

  /** @returns ids of the rows that were new; this transaction holds them until the commit */
  async insert(
    tx: PoolClient,
    model: Model,
    generation: number,
    rows: readonly Written[],
  ): Promise<ReadonlySet<string>> {
    if (rows.length === 0) return new Set();
    const key = `${model.name}/${generation}`;
    const statement = this.#inserts.get(key) ?? buildInsert(model, generation);
    this.#inserts.set(key, statement);
    const values = valuesOf(statement.columns, [...rows].sort(byId));
    const inserted = await tx.query({ name: statement.name, text: statement.text, values });
    return new Set(inserted.rows.map((row: { readonly id: string }) => row.id));
  }
}
