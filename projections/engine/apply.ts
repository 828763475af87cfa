import type { PoolClient } from 'pg';
import type { FailureAction } from '#runtime/consuming/options.ts';
import { isBridged, skippedRevisions } from '#runtime/consuming/parking.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { idOf, kindOf } from '#schemas/topics.ts';
import { groupOf, type Projection } from '../index.ts';
import { applyEvent, type Base, type ColumnType, type Model, type Row } from './model.ts';
import { asRow, rowTypes } from './rows.ts';
import { tableOf } from './tables.ts';

/**
 * Writes all changed rows of a table in one statement: each column is one array parameter. Rows are ordered by id, so
 * two transactions that lock the same rows wait for each other and never deadlock.
 */

/** A row to write: a folded row, or a placeholder that has only its base members. */
type Written = Pick<Base, 'id' | 'workspace_id' | 'revision'> & { readonly [column: string]: unknown };

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
export const storableJson = (json: string): string =>
  json.includes('\\u') ? json.replace(unstorable, '$1\\ufffd') : json;

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
class Upserts {
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

/**
 * Applies a batch of events to the tables of one projection: loads the rows that the batch continues, folds in memory,
 * writes each table in one statement, then recounts the counted columns of the touched owners. An owner without a row
 * gets a hidden placeholder first, so that there is a row to lock while its children are counted.
 */

type Folded = ReadonlyMap<string, Row<object>>;

interface Changes {
  readonly model: Model;
  /** Rows that advanced, by id. */
  readonly rows: Folded;
  /** Rows whose stream is in this batch from its first event on. */
  readonly created: ReadonlySet<string>;
}

/** True when the batch holds the stream from its first event on without a gap: then the fold needs no stored row. */
const isWhole = (events: readonly DecodedEvent[]): boolean => events.every((event, at) => event.revision === at);

const columnsToLoad = (model: Model, isWarm: boolean): string => {
  const own = Object.keys(model.columns).filter((name) => model.counted[name] === undefined);
  return [
    'id',
    'workspace_id',
    'revision',
    'created_at',
    'updated_at',
    ...own.filter((name) => isWarm || !model.cold.includes(name)),
  ].join(', ');
};

export class Projector {
  readonly #projection: Projection;
  readonly #generation: number;
  readonly #upserts = new Upserts();

  constructor(projection: Projection, generation: number) {
    this.#projection = projection;
    this.#generation = generation;
  }

  /** Kinds of streams whose events the projector folds. */
  get kinds(): readonly string[] {
    return this.#projection.models.map((model) => model.kind);
  }

  async apply(tx: PoolClient, events: readonly DecodedEvent[]): Promise<FailureAction | null> {
    const changes: Changes[] = [];
    for (const model of this.#projection.models) {
      const streams = Map.groupBy(
        events.filter((event) => kindOf(event.stream) === model.kind),
        (event) => idOf(event.stream),
      );
      const loaded = await this.#load(tx, model, streams);
      const rows = new Map<string, Row<object>>();
      const created = new Set<string>();
      for (const [id, own] of streams) {
        const known = loaded.get(id) ?? null;
        const folded = await this.#fold(tx, model, id, known, own);
        if ('action' in folded) return folded;
        if (folded.row !== null && folded.row.revision > (known?.revision ?? -1)) rows.set(id, folded.row);
        if (isWhole(own)) created.add(id);
      }
      changes.push({ model, rows, created });
    }
    const owners = this.#owners(changes);
    for (const { model, rows } of changes) {
      // An owner created in this batch with all its children is written once, with its counts: no other transaction can
      // have touched it.
      const inserted = await this.#upserts.insert(tx, model, this.#generation, this.#counted(model, changes));
      for (const id of inserted) owners.get(model.name)?.delete(id);
      // mutant: recount without lock
      const placeholders = [...(owners.get(model.name) ?? [])].flatMap(([id, workspaceId]) =>
        rows.has(id) ? [] : [placeholder(id, workspaceId)],
      );
      // Upserting a placeholder of an owner that exists changes nothing but locks its row until the commit.
      await this.#upserts.write(tx, model, this.#generation, [
        ...([...rows.values()] as Written[]).filter(({ id }) => !inserted.has(id)),
        ...placeholders,
      ]);
    }
    await this.#recount(tx, owners);
    return null;
  }

  async #load(tx: PoolClient, model: Model, streams: ReadonlyMap<string, readonly DecodedEvent[]>): Promise<Folded> {
    const continued = [...streams].filter(([, own]) => !isWhole(own));
    const [warm, cool] = [[] as string[], [] as string[]];
    for (const [id, own] of continued) (own.some(({ type }) => model.warmedBy.includes(type)) ? warm : cool).push(id);
    const rows = [...(await this.#rowsOf(tx, model, cool, false)), ...(await this.#rowsOf(tx, model, warm, true))];
    return new Map(rows.map((row) => [row.id, row]));
  }

  async #rowsOf(
    tx: PoolClient,
    model: Model,
    ids: readonly string[],
    isWarm: boolean,
  ): Promise<readonly Row<object>[]> {
    if (ids.length === 0) return [];
    const { rows } = await tx.query({
      name: `load-${model.name}-${this.#generation}${isWarm ? '-warm' : ''}`,
      text: `select ${columnsToLoad(model, isWarm)} from ${tableOf(model, this.#generation)}
             where id = any($1::uuid[]) and revision >= 0`,
      values: [[...ids]],
      types: rowTypes,
    });
    return rows.map((raw) => asRow(model, raw));
  }

  /** A gap parks the stream, unless an operator had skipped all of the missing revisions. */
  async #fold(
    tx: PoolClient,
    model: Model,
    id: string,
    known: Row<object> | null,
    own: readonly DecodedEvent[],
  ): Promise<{ readonly row: Row<object> | null } | FailureAction> {
    const folded = fold(model, id, known, own);
    if (!('gap' in folded)) return folded;
    const stream = `${model.kind}-${id}`;
    const group = groupOf(this.#projection.name, this.#generation);
    const again = fold(model, id, known, own, await skippedRevisions(tx, group, stream));
    if (!('gap' in again)) return again;
    const { at, event } = again.gap;
    return park(event, `${stream} is at revision ${at} and the next event is ${event.revision}: there is a gap`);
  }

  /** Owners to recount, by owner model: changed owners and owners of changed children. Id → workspace. */
  #owners(changes: readonly Changes[]): ReadonlyMap<string, Map<string, string>> {
    const rowsOf = (name: string): Iterable<Row<object>> =>
      changes.find(({ model }) => model.name === name)?.rows.values() ?? [];
    return new Map(
      this.#projection.recounts.map((recount) => {
        const ids = new Map<string, string>();
        for (const row of rowsOf(recount.owner)) ids.set(row.id, row.workspace_id);
        for (const { model, by } of recount.children) {
          for (const row of rowsOf(model) as Iterable<Written>) ids.set(String(row[by]), row.workspace_id);
        }
        return [recount.owner, ids];
      }),
    );
  }

  /**
   * Owners created in this batch whose children in the batch were all created in it too, with their counted columns.
   */
  #counted(model: Model, changes: readonly Changes[]): readonly Written[] {
    const recount = this.#projection.recounts.find((one) => one.owner === model.name && one.countCreated !== undefined);
    const own = changes.find((one) => one.model.name === model.name);
    if (recount?.countCreated === undefined || own === undefined || own.created.size === 0) return [];
    const children = new Map<string, Row<object>[]>();
    const older = new Set<string>();
    for (const { model: name, by } of recount.children) {
      const theirs = changes.find((one) => one.model.name === name);
      for (const row of (theirs?.rows.values() ?? []) as Iterable<Row<object> & Written>) {
        const owner = String(row[by]);
        if (theirs?.created.has(row.id) !== true) older.add(owner);
        else if (children.has(owner)) children.get(owner)?.push(row);
        else children.set(owner, [row]);
      }
    }
    const { countCreated } = recount;
    return [...own.created].flatMap((id) => {
      const row = own.rows.get(id);
      return row === undefined || older.has(id)
        ? []
        : [countCreated(row, children.get(id) ?? []) as Row<object> & Written];
    });
  }

  /**
   * Runs after the statement that locked the owners, so it sees everything that was committed before the lock was
   * granted.
   */
  async #recount(tx: PoolClient, owners: ReadonlyMap<string, ReadonlyMap<string, string>>): Promise<void> {
    for (const recount of this.#projection.recounts) {
      const ids = [...(owners.get(recount.owner)?.keys() ?? [])];
      if (ids.length === 0) continue;
      const statements = recount.statements((name) => tableOf({ name }, this.#generation));
      for (const [at, text] of statements.entries()) {
        await tx.query({ name: `recount-${recount.owner}-${this.#generation}-${at}`, text, values: [ids.sort()] });
      }
    }
  }
}

const placeholder = (id: string, workspaceId: string): Written => ({ id, workspace_id: workspaceId, revision: -1 });

const park = (event: DecodedEvent, reason: string): FailureAction => ({ action: 'park', eventId: event.id, reason });

interface Gap {
  readonly at: number;
  readonly event: DecodedEvent;
}

/** The revision guard: skips events that the row already holds; reports a gap and never guesses across it. */
const fold = (
  model: Model,
  id: string,
  known: Row<object> | null,
  events: readonly DecodedEvent[],
  skipped: ReadonlySet<number> = new Set(),
): { readonly row: Row<object> | null } | { readonly gap: Gap } | FailureAction => {
  let row = known;
  for (const event of events) {
    const at = row?.revision ?? -1;
    if (event.revision <= at) continue;
    if (row === null && model.fences.includes(event.type)) continue;
    // Where events may precede the creation, the row does not know their number: it accepts the creating event at any
    // revision.
    const mayFollow = event.revision === at + 1 || (row === null && model.fences.length > 0);
    if (!mayFollow && !isBridged(at, event.revision, skipped)) return { gap: { at, event } };
    const next = applyEvent(model, id, row, event);
    if (next === null) return park(event, `${event.stream} does not begin with the event that creates it`);
    row = next;
  }
  return { row };
};
