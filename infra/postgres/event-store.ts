/** The event store in a Postgres schema, with the semantics of EventStoreDB. `event-writer.ts` writes it. */

import type pg from 'pg';
import { pause } from '#contracts/base/pause.ts';
import {
  type AppendResult,
  type EventStore,
  EventStoreError,
  type EventToAppend,
  type ExpectedRevision,
  type ReadStart,
  type RecordedEvent,
  type SubscriptionItem,
  type WorkspacePage,
} from '#contracts/ports/event-store.ts';
import { LogError } from '#contracts/ports/log.ts';
import { checkAppend } from '#infra/append-rules.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { appendGroup, statements, tables } from './event-store.sql.ts';
import { EventTail, readTail } from './event-tail.ts';
import { EventWriter } from './event-writer.ts';
import { unpackedView } from './packing/packing.sql.ts';
import { backoffMs, bigintTypes, checkSchemaName, isAccessDenied, openPool } from './pool.ts';
import { migrateSchema, type NumberedSchema, type SchemaOptions } from './schema.ts';
import { answeredWithin } from './session.ts';
import { type EventRow, toEvent } from './stored-event.ts';
import { StreamReader } from './stream-reader.ts';
import { workspaceTables } from './workspace-index.sql.ts';
import { type KeepIndexOptions, keepWorkspaceIndex } from './workspace-index.ts';
import { WorkspaceReader } from './workspace-reader.ts';

export interface PostgresEventStoreOptions {
  readonly url: string;
  /** Default `es`. */
  readonly schema?: string;
  /** Partitions of a topic; stored when the tables are made. Default 12. */
  readonly partitions?: number;
  /** Milliseconds until an append without an answer counts as unknown. Default 10,000. */
  readonly deadlineMs?: number;
  /** Milliseconds until a read of a stream without an answer fails. Default 10,000. */
  readonly readMs?: number;
  /** Most connections for reading. Default 4; the writer and the tail have one more each. */
  readonly readers?: number;
  /** Milliseconds after which a tail polls where no notification came. Default 1,000. */
  readonly pollMs?: number;
  readonly warn?: SchemaOptions['warn'];
}

const maxInt8 = 2n ** 63n - 1n;
const pageEvents = 500;

const within = (position: bigint | undefined): bigint | undefined =>
  position === undefined || position > maxInt8 ? undefined : position;

/** A changed `append_group`, table or view is a further file: processes of two releases call what is here side by side. */
export const eventSchema = (schema: string): NumberedSchema => ({
  schema,
  lock: `event store tables ${schema}`,
  files: [
    { number: 1, name: '001-events', sql: `${tables(schema)}${unpackedView(schema)}` },
    { number: 2, name: '002-append', sql: appendGroup(schema) },
    { number: 3, name: '003-workspaces', sql: workspaceTables(schema) },
  ],
});

/**
 * Brings the tables to this build. Safe to run in several processes at once.
 * @throws LogError `partition_mismatch` when the tables were made with another number of partitions; else as
 * `migrateSchema`
 */
export const migrateEvents = async (
  pool: pg.Pool,
  schema: string,
  partitions: number,
  options: SchemaOptions = {},
): Promise<void> => {
  await migrateSchema(pool, options, eventSchema(schema));
  const find = () => pool.query<{ partitions: number }>(`select partitions from ${schema}.layout`);
  let { rows } = await find();
  if (rows.length === 0) {
    await pool.query(`insert into ${schema}.layout (partitions) values ($1) on conflict do nothing`, [partitions]);
    ({ rows } = await find());
  }
  const stored = rows[0]?.partitions;
  if (stored === partitions) return;
  throw new LogError(
    'partition_mismatch',
    `the event tables were made with ${stored} partitions a topic, the configuration says ${partitions}: keys would change their partition`,
  );
};

export class PostgresEventStore implements EventStore {
  /** The process's only tail; the embedded log reads it too. */
  readonly tail: EventTail;
  readonly pool: pg.Pool;
  readonly #schema: string;
  readonly #sql: ReturnType<typeof statements>;
  readonly #writer: EventWriter;
  readonly #readMs: number;
  readonly #reader: StreamReader;
  readonly #workspaces: WorkspaceReader;
  readonly #url: string;
  readonly #closed = new AbortController();
  #closing: Promise<void> | undefined;

  /** Opens the store and creates its tables where they are missing. Errors as `migrateEvents`. */
  static async open(options: PostgresEventStoreOptions): Promise<PostgresEventStore> {
    const store = new PostgresEventStore(options);
    try {
      const { partitions = defaultPartitions, warn } = options;
      await migrateEvents(store.pool, store.#schema, partitions, warn === undefined ? {} : { warn });
    } catch (error) {
      await store.close();
      throw error;
    }
    return store;
  }

  private constructor(options: PostgresEventStoreOptions) {
    const { url, deadlineMs = 10_000, partitions = defaultPartitions } = options;
    const schema = checkSchemaName(options.schema ?? 'es');
    this.#url = url;
    this.#schema = schema;
    this.#sql = statements(schema);
    this.pool = openPool({ url, max: options.readers ?? 4, name: 'events-read', byKey: true });
    this.#readMs = options.readMs ?? 10_000;
    this.#reader = new StreamReader(this.pool, schema, this.#readMs);
    this.#workspaces = new WorkspaceReader(this.pool, schema, this.#readMs);
    this.tail = new EventTail({ pool: this.pool, url, schema, pollMs: options.pollMs ?? 1_000 });
    this.#writer = new EventWriter({ url, schema, partitions, deadlineMs });
  }

  async append(stream: string, expected: ExpectedRevision, events: readonly EventToAppend[]): Promise<AppendResult> {
    return this.#writer.append(stream, expected, events, checkAppend(stream, expected, events));
  }

  async read(
    stream: string,
    options: { readonly from?: bigint; readonly limit?: number } = {},
  ): Promise<readonly RecordedEvent[]> {
    const from = options.from ?? 0n;
    if (from > maxInt8) return [];
    // A NUL would end the shared statement for every caller; no stream name has one.
    if (from === 0n && options.limit === undefined && !stream.includes('\0'))
      return this.#answer(this.#reader.read(stream));
    const { rows } = await this.#answer(
      this.pool.query<EventRow>({
        name: 'read',
        text: this.#sql.read,
        values: [stream, from, options.limit ?? null],
        rowMode: 'array',
        types: bigintTypes,
        ...answeredWithin(this.#readMs),
      }),
    );
    return rows.map((row) => toEvent(row));
  }

  async readAll({ after, from, limit }: ReadStart & { readonly limit: number }): Promise<readonly RecordedEvent[]> {
    if (from === undefined) return this.#answer(readTail(this.pool, this.#schema, { after, limit }));
    // Positions are integers here, drawn from 1 on.
    const page = await this.#answer(readTail(this.pool, this.#schema, { after: from - 1n, limit: Math.max(1, limit) }));
    if (page[0] !== undefined && page[0].position !== from) {
      throw new EventStoreError('invalid_position', `no event has position ${from}`);
    }
    return page.slice(0, limit);
  }

  async readWorkspace(
    workspaceId: string,
    { after, from, limit, until }: ReadStart & { readonly limit: number; readonly until?: bigint },
  ): Promise<WorkspacePage> {
    const begin = from === undefined ? after : from - 1n;
    const page = await this.#answer(
      this.#workspaces.read({ workspaceId, after: begin ?? 0n, limit: Math.max(1, limit), until: within(until) }),
    );
    // The caller computes its next start from the given one; a position that was counted back is not usable.
    return page.next === (begin ?? 0n) ? { ...page, next: after ?? null } : page;
  }

  /** Fills the index of workspaces until the signal: one process of the system does, the others stand by. */
  keepWorkspaceIndex(options: KeepIndexOptions): Promise<void> {
    const signal = AbortSignal.any([options.signal, this.#closed.signal]);
    const { pool, tail } = this;
    return keepWorkspaceIndex({ url: this.#url, schema: this.#schema, pool, tail }, { ...options, signal });
  }

  async head(): Promise<bigint | null> {
    const { rows } = await this.#answer(
      this.pool.query<[bigint | null]>({ name: 'head', text: this.#sql.head, rowMode: 'array', types: bigintTypes }),
    );
    return rows[0]?.[0] ?? null;
  }

  async *subscribe(options: {
    readonly after: bigint | null;
    readonly signal: AbortSignal;
  }): AsyncGenerator<SubscriptionItem> {
    const leave = this.tail.join(null);
    try {
      yield* this.#follow(options.after, AbortSignal.any([options.signal, this.#closed.signal]));
    } finally {
      leave();
    }
  }

  async *#follow(from: bigint | null, signal: AbortSignal): AsyncGenerator<SubscriptionItem> {
    let after = from;
    let caughtUp = false;
    let failures = 0;
    while (!signal.aborted) {
      const version = this.tail.version;
      let page: readonly RecordedEvent[];
      try {
        page = (await this.tail.read(after, pageEvents)).events;
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (isAccessDenied(error))
          throw new EventStoreError('access_denied', 'Postgres refuses access to the event table', { cause: error });
        // Resumes from the last event that the consumer took, so a lost connection skips nothing.
        await pause(backoffMs(failures++), signal);
        continue;
      }
      for (const event of page) {
        if (signal.aborted) return;
        yield { kind: 'event', event };
        after = event.position;
      }
      if (page.length > 0) continue;
      if (!caughtUp && !signal.aborted) {
        caughtUp = true;
        yield { kind: 'caughtUp' };
      }
      await this.tail.changed(version, signal);
    }
  }

  async ping(): Promise<void> {
    await this.#answer(this.pool.query('select 1'));
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#closed.abort();
      await this.#writer.close();
      await this.tail.close();
      await this.pool.end();
    })();
    return this.#closing;
  }

  async #answer<T>(query: Promise<T>): Promise<T> {
    try {
      return await query;
    } catch (error) {
      if (isAccessDenied(error))
        throw new EventStoreError('access_denied', 'Postgres refuses access to the event table', { cause: error });
      throw new EventStoreError('unavailable', 'Postgres does not answer', { cause: error });
    }
  }
}
