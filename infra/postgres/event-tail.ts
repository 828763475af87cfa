/**
 * Reads the event table by position. The writers' lock serialises commits, so a reader that sees a position sees every
 * lower one: `position > last` skips nothing. One tail serves all readers of a process, each at its own position.
 */

import { Socket } from 'node:net';
import pg from 'pg';
import { textArray } from '#contracts/base/array-literals.ts';
import { pause } from '#contracts/base/pause.ts';
import { maxAppendBytes } from '#contracts/ports/event-store.ts';
import type { Topic } from '#schemas/topics.ts';
import { channelOf, statements } from './event-store.sql.ts';
import { backoffMs, bigintTypes, defaultConnectMs, keepAlive, limitAnswers } from './pool.ts';
import { behindEvent, type EventRow, type TailEvent, toEvent } from './stored-event.ts';

/** Wakes the readers of the event table when there are new events. */

/** How often an idle listening connection is probed; an answer may take half of that. Milliseconds. */
const defaultBeatMs = 10_000;

/** Most poll intervals that a reader waits for a notification after a long silence. */
const maxPolls = 5;

/**
 * Wake-ups by a listening connection, and by a timer in case a notification is lost or the connection is down. Take
 * `version` before reading; `changed(version)` then misses nothing that was committed after the read.
 */
export class TailSignal {
  readonly #url: string;
  readonly #channel: string;
  readonly #pollMs: number;
  readonly #beatMs: number;
  readonly #closed = new AbortController();
  readonly #waiting = new Set<() => void>();
  #listening: Promise<void> | undefined;
  #connected = false;
  #version = 0;
  #noticedAt = performance.now();

  constructor(options: {
    readonly url: string;
    readonly schema: string;
    readonly pollMs?: number;
    readonly beatMs?: number;
  }) {
    this.#url = options.url;
    this.#beatMs = options.beatMs ?? defaultBeatMs;
    this.#channel = channelOf(options.schema);
    this.#pollMs = options.pollMs ?? 1_000;
  }

  get version(): number {
    return this.#version;
  }

  /** Resolves when events may have been committed since `seen`, at the latest after the poll interval. */
  async changed(seen: number, signal: AbortSignal): Promise<void> {
    this.#listening ??= this.#listen();
    if (this.#version !== seen || signal.aborted || this.#closed.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, this.#waitMs());
      signal.addEventListener('abort', done);
      this.#waiting.add(done);
    });
  }

  /** A read found new events, announced or not: readers poll at every interval again. */
  noticed(): void {
    this.#noticedAt = performance.now();
  }

  /** Only a lost notification makes a poll find something: the longer nothing comes, the rarer the polls. */
  #waitMs(): number {
    if (!this.#connected) return Math.min(100, this.#pollMs);
    const quietMs = performance.now() - this.#noticedAt;
    return Math.min(Math.max(quietMs / 4, this.#pollMs), maxPolls * this.#pollMs);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#wake();
    await this.#listening;
  }

  #wake(): void {
    this.noticed();
    this.#version++;
    for (const done of [...this.#waiting]) done();
  }

  async #listen(): Promise<void> {
    const closed = this.#closed.signal;
    const closing = new Promise<void>((resolve) => closed.addEventListener('abort', () => resolve()));
    for (let failures = 0; !closed.aborted; failures++) {
      const socket = new Socket();
      const client = new pg.Client({
        connectionString: this.#url,
        application_name: 'events-listen',
        connectionTimeoutMillis: defaultConnectMs,
        ...keepAlive,
        stream: () => socket,
      });
      limitAnswers(client, this.#beatMs / 2);
      const ended = new Promise<void>((resolve) => {
        client.on('error', () => resolve());
        client.on('end', () => resolve());
      });
      client.on('notification', () => this.#wake());
      const listen = async () => {
        await client.connect();
        await client.query(`listen ${this.#channel}`);
        failures = 0;
        this.#connected = true;
        // Commits during the gap were not announced to this connection.
        this.#wake();
        // No statement runs on this connection, so only a probe notices that it fell silent: then it is closed, which
        // ends the wait.
        const beat = setInterval(() => client.query('select 1').catch(() => socket.destroy()), this.#beatMs);
        await ended.finally(() => clearInterval(beat));
      };
      // An error leads to the next try; readers poll meanwhile. NOTE: pg's `connect` never settles once `end` is
      // called.
      await Promise.race([listen().catch(() => {}), closing]);
      this.#connected = false;
      socket.destroy();
      if (!closed.aborted) await pause(backoffMs(failures), closed);
    }
  }
}

interface TailPage {
  readonly events: readonly TailEvent[];
  /** Whether the page's size ended it, and not the end of the table. */
  readonly isFull: boolean;
}

/** Most bytes of one page: bounds the memory of a reader whose events are large. */
export const pageBytes = 8 * 1024 * 1024;

const bytesOf = (events: readonly TailEvent[]): number => events.reduce((sum, { bytes }) => sum + bytes, 0);

/** Whether bytes ended the page. */
const endedByBytes = (events: readonly TailEvent[]): boolean => bytesOf(events) > pageBytes - maxAppendBytes;

/** Bytes that are not text of the database: invalid UTF-8, a NUL, or characters outside of its encoding. */
const isNoText = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && (error.code === '22021' || error.code === '22P05');

/** One page after a position (exclusive; null = from the start), in total order. Empty only at the end. */
export const readTail = async (
  pool: pg.Pool,
  schema: string,
  options: { readonly after: bigint | null; readonly limit: number; readonly topics?: readonly Topic[] },
): Promise<TailEvent[]> => {
  const { after, limit, topics } = options;
  const values = [after ?? 0n, limit, pageBytes, topics === undefined ? null : textArray(topics)];
  const { tail, tailOfBytes } = statements(schema);
  return (await rowsAsText(pool, values, [`${schema}-tail`, tail], [`${schema}-tail-of-bytes`, tailOfBytes])).events;
};

type Statement = readonly [name: string, text: string];

/** By the first statement; where some bytes of its page are not text, by the second one. */
const rowsAsText = async (pool: pg.Pool, values: unknown[], asText: Statement, asBytes: Statement) => {
  const ask = async ([name, text]: Statement, encoding: 'utf8' | 'base64') => {
    const asked = { name, text, values, rowMode: 'array' as const, types: bigintTypes };
    const { rows } = await pool.query<EventRow>(asked);
    return { rows, events: rows.map((row) => toEvent(row, encoding)) };
  };
  try {
    return await ask(asText, 'utf8');
  } catch (error) {
    if (!isNoText(error)) throw error;
    return ask(asBytes, 'base64');
  }
};

/** One page after a position: the events of these types, and the last event of each topic. Empty only at the end. */
const readTypes = async (
  pool: pg.Pool,
  schema: string,
  { after, limit, types }: { readonly after: bigint; readonly limit: number; readonly types: readonly string[] },
): Promise<TailPage> => {
  const { typed, typedOfBytes } = statements(schema);
  const values = [after, limit, pageBytes, textArray(types)];
  const asBytes = [`${schema}-typed-of-bytes`, typedOfBytes] as const;
  const { rows, events } = await rowsAsText(pool, values, [`${schema}-typed`, typed], asBytes);
  const read: unknown = rows[0]?.at(behindEvent);
  return { events, isFull: read === limit || endedByBytes(events) };
};

/** Newest events that readers at the end share, so that ten consumers cost one query. */
const windowEvents = 2_000;
const windowBytes = 8 * 1024 * 1024;

export class EventTail {
  readonly #pool: pg.Pool;
  readonly #schema: string;
  readonly #signal: TailSignal;
  /** Of each reader; null: all. */
  readonly #readers = new Map<object, ReadonlySet<string> | null>();
  /** Types that any reader wants; null: all. A new object whenever a reader comes or goes. */
  #wanted: { readonly types: readonly string[] | null } = { types: [] };
  /** Every wanted event after `from` up to `end`, without a gap; whether more followed when it was read. */
  #window: { from: bigint; end: bigint; events: TailEvent[]; bytes: number; more: boolean } | undefined;
  #refreshing: { readonly version: number; readonly done: Promise<void> } | undefined;

  constructor(options: {
    readonly pool: pg.Pool;
    readonly url: string;
    readonly schema: string;
    readonly pollMs?: number;
  }) {
    this.#pool = options.pool;
    this.#schema = options.schema;
    this.#signal = new TailSignal(options);
  }

  get version(): number {
    return this.#signal.version;
  }

  /** Events in memory for all readers. */
  get cachedEvents(): number {
    return this.#window?.events.length ?? 0;
  }

  changed(seen: number, signal: AbortSignal): Promise<void> {
    return this.#signal.changed(seen, signal);
  }

  /**
   * A reader that wants these types (null: all) of what it reads from now on; it gets others, too. What no reader wants
   * is not fetched, except for the last event of each topic and page.
   * @returns ends the reader
   */
  join(types: ReadonlySet<string> | null): () => void {
    const reader = {};
    this.#readers.set(reader, types);
    this.#want();
    return () => {
      this.#readers.delete(reader);
      this.#want();
    };
  }

  /** What the window holds was chosen for other readers. */
  #want(): void {
    const wanted = [...this.#readers.values()];
    const isAll = wanted.includes(null);
    this.#wanted = { types: isAll ? null : [...new Set(wanted.flatMap((types) => [...(types ?? [])]))].sort() };
    this.#window = undefined;
  }

  async #fetch(after: bigint, limit: number): Promise<TailPage> {
    const { types } = this.#wanted;
    if (types !== null) return readTypes(this.#pool, this.#schema, { after, limit, types });
    const events = await readTail(this.#pool, this.#schema, { after, limit });
    return { events, isFull: events.length === limit || endedByBytes(events) };
  }

  /** Up to `limit` events after the position, by a reader; empty only when there was none at the time of the call. */
  async read(after: bigint | null, limit: number): Promise<TailPage> {
    const from = after ?? 0n;
    const known = this.#after(from, limit);
    if (known !== undefined && known.events.length > 0) return known;
    if (known === undefined) {
      const wanted = this.#wanted;
      const page = await this.#fetch(from, limit);
      const end = page.events.at(-1)?.position ?? from;
      // Only a reader near the end moves the window. A page that was chosen for former readers is no window.
      const isNewer = this.#window === undefined || end > this.#window.end;
      if (!page.isFull && isNewer && wanted === this.#wanted) {
        this.#window = { from, end, events: [...page.events], bytes: bytesOf(page.events), more: false };
        this.#trim();
      }
      return page;
    }
    const version = this.#signal.version;
    for (;;) {
      this.#refreshing ??= this.#refresh();
      const refreshing = this.#refreshing;
      await refreshing.done;
      // A read that began before the wake-up may have missed the announced events.
      if (refreshing.version >= version) break;
    }
    return this.#after(from, limit) ?? (await this.#fetch(from, limit));
  }

  close(): Promise<void> {
    return this.#signal.close();
  }

  /** From the window; undefined where it does not reach. */
  #after(from: bigint, limit: number): TailPage | undefined {
    const window = this.#window;
    if (window === undefined || from < window.from || from > window.end) return undefined;
    let low = 0;
    let high = window.events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((window.events[middle]?.position ?? 0n) <= from) low = middle + 1;
      else high = middle;
    }
    const events = window.events.slice(low, low + limit);
    const isCut = low + events.length < window.events.length;
    return { events, isFull: isCut || window.more || endedByBytes(events) };
  }

  #refresh(): { version: number; done: Promise<void> } {
    const version = this.#signal.version;
    const load = async () => {
      const window = this.#window;
      if (window === undefined) return;
      const { events, isFull } = await this.#fetch(window.end, 500);
      if (events.length > 0) this.#signal.noticed();
      window.more = isFull;
      for (const event of events) {
        window.events.push(event);
        window.bytes += event.bytes;
        window.end = event.position;
      }
      this.#trim();
    };
    const done = load().finally(() => {
      this.#refreshing = undefined;
    });
    return { version, done };
  }

  #trim(): void {
    const window = this.#window;
    if (window === undefined) return;
    let drop = 0;
    while (window.events.length - drop > windowEvents || window.bytes > windowBytes) {
      const event = window.events[drop];
      if (event === undefined) break;
      window.bytes -= event.bytes;
      window.from = event.position;
      drop++;
    }
    if (drop > 0) window.events.splice(0, drop);
  }
}
