/**
 * Reads the event table by position. The writers' lock serialises commits, so a reader that sees a position sees every
 * lower one: `position > last` skips nothing. One tail serves all readers of a process, each at its own position.
 */
import pg from 'pg';
import { maxAppendBytes } from '#contracts/ports/event-store.ts';
import type { Topic } from '#schemas/topics.ts';
import { statements, textArray } from './event-store.sql.ts';
import { bigintTypes } from './pool.ts';
import { type EventRow, type TailEvent, toEvent } from './stored-event.ts';
import { TailSignal } from './tail-signal.ts';

export { pause } from './tail-signal.ts';

/** Most bytes of one page: bounds the memory of a reader whose events are large. */
export const pageBytes = 8 * 1024 * 1024;

/** Whether bytes ended the page, and not the end of the table. */
export const isFull = (page: readonly TailEvent[]): boolean =>
  page.reduce((sum, { bytes }) => sum + bytes, 0) > pageBytes - maxAppendBytes;

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
  const rowsOf = async (name: string, text: string): Promise<EventRow[]> => {
    const asked = { name: `${schema}-${name}`, text, values, rowMode: 'array' as const, types: bigintTypes };
    return (await pool.query<EventRow>(asked)).rows;
  };
  const { tail, tailOfBytes } = statements(schema);
  try {
    return (await rowsOf('tail', tail)).map((row) => toEvent(row, 'utf8'));
  } catch (error) {
    if (!isNoText(error)) throw error;
    return (await rowsOf('tail-of-bytes', tailOfBytes)).map((row) => toEvent(row));
  }
};

/** Newest events that readers at the end share, so that ten consumers cost one query. */
const windowEvents = 2_000;
const windowBytes = 8 * 1024 * 1024;

export class EventTail {
  readonly #pool: pg.Pool;
  readonly #schema: string;
  readonly #signal: TailSignal;
  /** Every event after `from` up to `end`, without a gap. */
  #window: { from: bigint; end: bigint; events: TailEvent[]; bytes: number } | undefined;
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

  /** Up to `limit` events after the position; empty only when there was none at the time of the call. */
  async read(after: bigint | null, limit: number): Promise<readonly TailEvent[]> {
    const from = after ?? 0n;
    const known = this.#after(from, limit);
    if (known !== undefined && known.length > 0) return known;
    if (known === undefined) {
      const page = await readTail(this.#pool, this.#schema, { after: from, limit });
      const end = page.at(-1)?.position ?? from;
      // Only a reader near the end moves the window.
      if (page.length < limit && (this.#window === undefined || end > this.#window.end)) {
        this.#window = { from, end, events: [...page], bytes: page.reduce((sum, { bytes: own }) => sum + own, 0) };
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
    return this.#after(from, limit) ?? (await readTail(this.#pool, this.#schema, { after: from, limit }));
  }

  close(): Promise<void> {
    return this.#signal.close();
  }

  /** From the window; undefined where it does not reach. */
  #after(from: bigint, limit: number): readonly TailEvent[] | undefined {
    const window = this.#window;
    if (window === undefined || from < window.from || from > window.end) return undefined;
    let low = 0;
    let high = window.events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((window.events[middle]?.position ?? 0n) <= from) low = middle + 1;
      else high = middle;
    }
    return window.events.slice(low, low + limit);
  }

  #refresh(): { version: number; done: Promise<void> } {
    const version = this.#signal.version;
    const load = async () => {
      const window = this.#window;
      if (window === undefined) return;
      const page = await readTail(this.#pool, this.#schema, { after: window.end, limit: 500 });
      if (page.length > 0) this.#signal.noticed();
      for (const event of page) {
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
