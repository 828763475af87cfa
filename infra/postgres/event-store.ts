/** The event store in a Postgres schema, with the semantics of EventStoreDB. `event-writer.ts` writes it. */
import type pg from 'pg';
import { textArray } from '#contracts/base/array-literals.ts';
import { pause } from '#contracts/base/pause.ts';
import {
  type AppendResult,
  type EventEraser,
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
import { answeredWithin, backoffMs, bigintTypes, checkSchemaName, isAccessDenied, openPool } from './pool.ts';
import { migrateSchema, type NumberedSchema, type SchemaOptions } from './schema.ts';
import { behindEvent, type EventRow, toEvent } from './stored-event.ts';
import { workspaceTables } from './workspace-index.sql.ts';
import { type KeepIndexOptions, keepWorkspaceIndex } from './workspace-index.ts';
import { WorkspaceReader } from './workspace-reader.ts';

/**
 * Callers that read whole streams share statements: requests that arrive while one statement runs are answered together
 * by the next. A statement begins after the call, so a reader sees everything committed before. A stream too long for
 * that is read alone, one such stream at a time: only one long stream is in memory, and short ones never wait for it.
 */
const maxStreams = 64;
/**
 * A statement over many streams ends with the event that exceeds this: 64 streams of 8 MiB each would end the process.
 */
const sharedBytes = 2 * 1_024 * 1_024;
const unbounded = 2n ** 62n;
/** Statements at once: a long stream does not hold up all other readers. */
const maxOut = 2;

type SizedRow = [...EventRow, bytes: bigint];
const streamAt = 1;
const bytesAt = behindEvent;
const toEventOf = (row: SizedRow): RecordedEvent => toEvent(row as unknown as EventRow);

interface Waiting {
  readonly stream: string;
  readonly resolve: (events: readonly RecordedEvent[]) => void;
  readonly reject: (error: unknown) => void;
}

export class StreamReader {
  readonly #pool: pg.Pool;
  readonly #text: string;
  readonly #readMs: number;
  #waiting: Waiting[] = [];
  #long: Waiting[] = [];
  #out = 0;
  #longOut = false;

  /** @param readMs milliseconds until a statement frees its slot, even if it has no answer */
  constructor(pool: pg.Pool, schema: string, readMs: number) {
    this.#pool = pool;
    this.#readMs = readMs;
    this.#text = statements(schema).readWhole;
  }

  /** All events of the stream, in order. */
  read(stream: string): Promise<readonly RecordedEvent[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ stream, resolve, reject });
      if (this.#out === maxOut) return;
      this.#out += 1;
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    // Requests of the same turn share a statement.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, maxStreams);
      try {
        this.#answer(batch, await this.#ask(batch, BigInt(sharedBytes)));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#out -= 1;
  }

  async #ask(batch: readonly Waiting[], bytes: bigint): Promise<readonly SizedRow[]> {
    const { rows } = await this.#pool.query<SizedRow>({
      name: 'read-whole',
      text: this.#text,
      values: [textArray([...new Set(batch.map(({ stream }) => stream))]), bytes],
      rowMode: 'array',
      types: bigintTypes,
      ...answeredWithin(this.#readMs),
    });
    return rows;
  }

  /**
   * Answers the callers of whole streams. The stream in which the rows were cut is read alone, those after it again.
   */
  #answer(batch: readonly Waiting[], rows: readonly SizedRow[]): void {
    const last = rows.at(-1);
    const cut = last !== undefined && last[bytesAt] >= BigInt(sharedBytes) ? last[streamAt] : null;
    const events = Map.groupBy(rows.map(toEventOf), ({ stream }) => stream);
    const again: Waiting[] = [];
    for (const waiting of batch) {
      const { stream, resolve } = waiting;
      if (stream === cut) this.#long.push(waiting);
      else if (cut !== null && !events.has(stream)) again.push(waiting);
      else resolve(events.get(stream) ?? []);
    }
    this.#waiting.unshift(...again);
    if (cut !== null && !this.#longOut) void this.#runLong();
  }

  async #runLong(): Promise<void> {
    this.#longOut = true;
    for (let [first] = this.#long; first !== undefined; [first] = this.#long) {
      const { stream } = first;
      const same = this.#long.filter((one) => one.stream === stream);
      this.#long = this.#long.filter((one) => one.stream !== stream);
      try {
        const events = (await this.#ask([first], unbounded)).map(toEventOf);
        for (const { resolve } of same) resolve(events);
      } catch (error) {
        for (const { reject } of same) reject(error);
      }
    }
    this.#longOut = false;
  }
}

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

export class PostgresEventStore implements EventStore, EventEraser {
  readonly stays = null;
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

  /**
   * Takes all that events say out of their rows, for ever. What is left is that there was an event, so that readers which have
   * reached one of these positions go on behind it: no stream has it, and no workspace. A repeat changes nothing.
   */
  async erase(events: readonly Pick<RecordedEvent, 'position'>[]): Promise<void> {
    await this.pool.query(
      `with gone as (delete from ${this.#schema}.workspace_events where position = any($1::int8[]))
       update ${this.#schema}.event_rows set stream = 'erased-' || position, revision = 0, type = 'Erased', data = '{}',
         metadata = '{}', topic = null, partition = null, partition_key = 'erased', workspace = null, packing = null,
         unpacked_bytes = null where position = any($1::int8[])`,
      [events.map(({ position }) => position)],
    );
  }

  /** The rows that find the events went with them. */
  async forget(): Promise<void> {}

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
