import type { Knex } from 'knex';
import { types } from 'pg';
import type { Model, Row } from './model.ts';

/**
 * Converts rows from Postgres into the rows that the folds use: instants as ISO 8601 text, whatever the type parser
 * made.
 */

/** `2026-01-31 08:00:00.5+00` (or with `T`, as json has it) → `2026-01-31T08:00:00.500Z`. */
export const toIso = (value: unknown): string | null => {
  if (value === null || value === undefined) return null;
  if (value instanceof Date) return value.toISOString();
  const text = String(value);
  const end = text.indexOf('+', 19);
  // Fast path: a four-digit year, at most whole milliseconds, a session in UTC.
  const utc = end > 0 && end <= 23 && (text.endsWith('+00') || text.endsWith('+00:00'));
  if (!utc || text[4] !== '-') return new Date(text).toISOString();
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${text.slice(20, end).padEnd(3, '0')}Z`;
};

const timestamptz = 1184;
const asText = (text: string): string => text;

/**
 * Type parsers that leave instants as text for `asRow`: making a Date in between costs more than the rest of the row.
 */
export const rowTypes = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === timestamptz ? asText : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
};

const instantsOf = new WeakMap<Model, readonly string[]>();

const instants = (model: Model): readonly string[] => {
  const known = instantsOf.get(model);
  if (known !== undefined) return known;
  const columns = Object.entries(model.columns) as [string, string][];
  const found = [
    'created_at',
    'updated_at',
    ...columns.flatMap(([name, type]) => (type === 'timestamptz' ? [name] : [])),
  ];
  instantsOf.set(model, found);
  return found;
};

/** Changes the raw row in place and returns it typed; further members that the query joined stay on it. */
export const asRow = <Own extends object>(model: Model<Own>, raw: Record<string, unknown>): Row<Own> => {
  for (const name of instants(model)) raw[name] = toIso(raw[name]);
  return raw as Row<Own>;
};

/** Keyset cursor of lists that show the newest first. */
export interface NewestFirst {
  readonly createdAt: string;
  readonly id: string;
}

/** A page as the queries return it: one row beyond the limit shows whether there are more. */
export interface Page<T> {
  readonly rows: readonly T[];
  readonly hasMore: boolean;
}

export const pageOf = <T>(rows: readonly T[], limit: number): Page<T> => ({
  rows: rows.slice(0, limit),
  hasMore: rows.length > limit,
});

/** A substring pattern for `ilike` with its wildcards escaped. */
export const substring = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`;

export interface PageOf<After> {
  /** Key of the last row of the page before; null = from the start. */
  readonly after: After | null;
  readonly limit: number;
}

/** Runs a list that shows the newest first, by keyset: a deep page costs as much as the first one. */
export const newestFirst = async <Own extends object>(
  query: Knex.QueryBuilder,
  model: Model<Own>,
  { after, limit }: PageOf<NewestFirst>,
): Promise<Page<Row<Own>>> => {
  if (after !== null) query.whereRaw('(created_at, id) < (?::timestamptz, ?::uuid)', [after.createdAt, after.id]);
  const rows: Record<string, unknown>[] = await query
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(limit + 1);
  return pageOf(
    rows.map((row) => asRow(model, row)),
    limit,
  );
};
