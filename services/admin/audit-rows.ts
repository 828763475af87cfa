import type { PoolClient, QueryConfig } from 'pg';
import { streamPages } from '#contracts/ports/event-store.ts';
import { canonicalJson } from '#domain/canonical.ts';
import { storableJson } from '#projections/engine/apply.ts';
import { type Model, type Recount, type Row, rowOf } from '#projections/engine/model.ts';
import { reachesEnds } from '#projections/engine/positions.ts';
import { asRow } from '#projections/engine/rows.ts';
import { liveGeneration, tableOf } from '#projections/engine/tables.ts';
import { type Projection, projections } from '#projections/index.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { withConnection } from '#runtime/postgres/transactions.ts';
import { idOf, kindOf } from '#schemas/topics.ts';
import type { ChecksOptions, Say } from './audit-findings.ts';
import type { Admin } from './context.ts';

/** Every row of every read model is what its stream makes; and what is counted from other rows is what they say. */

const batch = 200;
/** Events of one read of a stream. */
const pageEvents = 500;
/** Owners whose children are counted again together. */
const ownersAtOnce = 2_000;
/** How often a row is read again that is of another revision than its stream: somebody writes meanwhile. */
const tries = 3;
/** How long a read model may take to apply what the log has, milliseconds. */
const patienceMs = 10_000;
/** Statements over a whole table, milliseconds. */
const tableMs = 3_600_000;
const maxNamed = 20;

interface Table {
  readonly model: Model;
  readonly projection: Projection;
  readonly name: string;
}

interface Expected {
  readonly stream: string;
  readonly id: string;
  readonly row: Row<object> | null;
}

const tablesOf = async ({ pool }: Admin): Promise<readonly Table[]> => {
  const made: Table[] = [];
  for (const projection of projections) {
    const live = await liveGeneration(pool, projection);
    if (live === null) continue;
    made.push(...projection.models.map((model) => ({ model, projection, name: tableOf(model, live) })));
  }
  return made;
};

const textOf = (value: unknown): string => storableJson(canonicalJson(value ?? null));

/** Columns in which two rows differ, those aside that are counted from other rows. */
const differing = (model: Model, ...rows: readonly [Row<object>, Row<object>]): readonly string[] => {
  const [left, right] = rows.map((one) => one as unknown as Readonly<Record<string, unknown>>);
  return ['workspace_id', 'revision', 'created_at', 'updated_at', ...Object.keys(model.columns)].filter(
    (name) => model.counted[name] === undefined && textOf(left?.[name]) !== textOf(right?.[name]),
  );
};
export class RowChecks {
  readonly #admin: Admin;
  readonly #options: ChecksOptions;
  readonly #byKind: ReadonlyMap<string, readonly Table[]>;
  readonly #waiting = new Map<Table, Expected[]>();

  private constructor(admin: Admin, options: ChecksOptions, tables: readonly Table[]) {
    this.#admin = admin;
    this.#options = options;
    this.#byKind = Map.groupBy(tables, ({ model }) => model.kind);
  }

  static async begin(admin: Admin, options: ChecksOptions): Promise<RowChecks> {
    return new RowChecks(admin, options, await tablesOf(admin));
  }

  covers(kind: string): boolean {
    return this.#byKind.has(kind);
  }

  /** @param events a whole stream */
  async add(stream: string, events: readonly DecodedEvent[]): Promise<void> {
    for (const table of this.#byKind.get(kindOf(stream)) ?? []) {
      const waiting = this.#waiting.get(table) ?? [];
      waiting.push({ stream, id: idOf(stream), row: rowOf(table.model, events) });
      this.#waiting.set(table, waiting);
      if (waiting.length >= batch) await this.#compare(table);
    }
  }

  async flush(): Promise<void> {
    for (const table of this.#byKind.values()) for (const one of table) await this.#compare(one);
  }

  async #compare(table: Table): Promise<void> {
    let open = this.#waiting.get(table) ?? [];
    this.#waiting.set(table, []);
    const { counted } = this.#options;
    counted.rows = (counted.rows ?? 0) + open.filter(({ row }) => row !== null).length;
    for (let tried = 1; open.length > 0; tried += 1) {
      const live = await this.#live(table, open);
      const other = open.filter(({ id, row }) => {
        const found = live.get(id);
        const isRow = found !== undefined && found.revision >= 0;
        if (row === null || !isRow) return (row === null) === isRow;
        return differing(table.model, found, row).length > 0;
      });
      const isOfOtherRevision = ({ id, row }: Expected) => (live.get(id)?.revision ?? -1) !== (row?.revision ?? -1);
      const moving = tried < tries ? other.filter(isOfOtherRevision) : [];
      for (const one of other) if (!moving.includes(one)) this.#name(table, one, live.get(one.id));
      if (moving.length > 0) await reachesEnds(this.#admin.pool, this.#admin.log, table.projection.name, patienceMs);
      open = await Promise.all(moving.map((one) => this.#again(table, one)));
    }
  }

  async #again({ model }: Table, { stream, id }: Expected): Promise<Expected> {
    const events: DecodedEvent[] = [];
    for await (const page of streamPages(this.#admin.eventStore, stream, pageEvents))
      events.push(...(await this.#admin.codec.decodeAll(page)));
    return { stream, id, row: rowOf(model, events) };
  }

  #name({ model }: Table, { id, row, stream }: Expected, live: Row<object> | undefined): void {
    const how = live === undefined || row === null ? null : differing(model, live, row);
    const what =
      live === undefined
        ? `is missing, which ${stream} makes`
        : how === null
          ? `is there, and ${stream} makes none`
          : `is not what ${stream} says: ${how.join(', ')}`;
    this.#options.say(`the row ${id} of ${model.name} ${what}`);
  }

  async #live({ model, name }: Table, open: readonly Expected[]): Promise<ReadonlyMap<string, Row<object>>> {
    const { rows } = await this.#admin.pool.query(`select * from ${name} where id = any($1::uuid[])`, [
      open.map(({ id }) => id),
    ]);
    return new Map(rows.map((row) => [row.id as string, asRow(model, row)]));
  }
}

/** Rows that no stream makes, texts of searches, and what is counted from other rows. */
export const compareTables = async (
  admin: Admin,
  workspaceId: string,
  counted: Record<string, number>,
  say: Say,
): Promise<void> => {
  const tables = await tablesOf(admin);
  const patiently = (text: string) =>
    admin.pool.query({ text, values: [workspaceId], query_timeout: tableMs } as QueryConfig);
  for (const { model, name } of tables) {
    const { rows: strays } = await patiently(
      `select id from ${name} t where workspace_id = $1 and revision >= 0 and not exists (
         select from ops.feed_events e where e.stream = '${model.kind}-' || t.id and e.revision = 0) limit ${maxNamed}`,
    );
    for (const { id } of strays) say(`the row ${id} of ${model.name} is there, and no stream makes it`);
    if (model.searched === null) continue;
    const { rows: texts } = await patiently(
      `select id from ${name} t where workspace_id = $1 and searched_revision = revision
         and searched is distinct from (${model.searched.text(`t.${model.searched.of}`)}) limit ${maxNamed}`,
    );
    for (const { id } of texts) say(`searches find the row ${id} of ${model.name} by another text than its own`);
  }
  for (const { recounts, name } of projections) {
    const own = tables.filter(({ projection }) => projection.name === name);
    for (const recount of recounts) await compareCounts(admin, workspaceId, { recount, own, counted, say });
  }
};

interface Counting {
  readonly recount: Recount;
  readonly own: readonly Table[];
  readonly counted: Record<string, number>;
  readonly say: Say;
}

/** Counts copies of the rows again with the statements of the projection: nothing of the live tables is written. */
const compareCounts = (admin: Admin, workspaceId: string, { recount, own, counted, say }: Counting): Promise<void> =>
  withConnection(admin.pool, async (session) => {
    const nameOf = (model: string): string => own.find((one) => one.model.name === model)?.name ?? '';
    const copyOf = (model: string): string => `pg_temp.audited_${model}`;
    const owner = own.find(({ model }) => model.name === recount.owner);
    const models = [recount.owner, ...recount.children.map(({ model }) => model)];
    if (owner === undefined) return;
    for (const model of models) {
      await session.query(`create temp table if not exists audited_${model} (like ${nameOf(model)} including all)`);
    }
    const names = Object.keys(owner.model.counted);
    const valuesOf = (row: string) => `jsonb_build_array(${names.map((name) => `${row}.${name}`).join(', ')})`;
    for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
      const ids = await copyPage(session, { recount, workspaceId, after, nameOf, copyOf });
      const last = ids.at(-1);
      if (last === undefined) break;
      for (const text of recount.statements(copyOf)) await session.query(text, text.includes('$1') ? [ids] : []);
      const { rows } = await session.query<{ readonly id: string }>(
        `select o.id from ${copyOf('before')} o join ${copyOf(recount.owner)} c using (id)
         where ${valuesOf('o')} is distinct from ${valuesOf('c')}`,
      );
      for (const { id } of rows) say(`the row ${id} of ${recount.owner} counts other rows than there are`);
      counted.counts = (counted.counts ?? 0) + ids.length;
      after = last;
    }
    for (const model of [...models, 'before']) await session.query(`drop table if exists ${copyOf(model)}`);
  });

interface Copying {
  readonly recount: Recount;
  readonly workspaceId: string;
  readonly after: string;
  readonly nameOf: (model: string) => string;
  readonly copyOf: (model: string) => string;
}

/** One view of owners and of what they count: rows that are written meanwhile are in both or in neither. */
const copyPage = async (
  session: PoolClient,
  { recount, workspaceId, after, nameOf, copyOf }: Copying,
): Promise<readonly string[]> => {
  const { owner, children } = recount;
  const tables = [owner, ...children.map(({ model }) => model)];
  await session.query('begin isolation level repeatable read');
  await session.query(`truncate ${tables.map(copyOf).join(', ')}`);
  await session.query(`drop table if exists ${copyOf('before')}`);
  // Generated columns cannot be written: the copy has the columns of the model alone.
  const { rows } = await session.query<{ readonly id: string }>(
    `select id from ${nameOf(owner)} where workspace_id = $1 and revision >= 0 and id > $2 order by id limit ${ownersAtOnce}`,
    [workspaceId, after],
  );
  const ids = rows.map(({ id }) => id);
  for (const [table, by] of [[owner, 'id'], ...children.map(({ model, by: column }) => [model, column])] as const) {
    const { rows: columns } = await session.query<{ readonly name: string }>(
      `select attname as name from pg_attribute
       where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
      [nameOf(table ?? '')],
    );
    const list = columns.map(({ name }) => `"${name}"`).join(', ');
    await session.query(
      `insert into ${copyOf(table ?? '')} (${list}) select ${list} from ${nameOf(table ?? '')} where ${by} = any($1::uuid[])`,
      [ids],
    );
  }
  await session.query(`create temp table audited_before as select * from ${copyOf(owner)}`);
  await session.query('commit');
  return ids;
};
