/**
 * Whole streams read by many callers share statements: those who ask while one is out are answered by the next,
 * together. A statement begins after the call, so a reader sees all that was committed before it asked.
 */
import type pg from 'pg';
import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import { statements, textArray } from './event-store.sql.ts';
import { type EventRow, toEvent } from './event-tail.ts';
import { bigintTypes } from './pool.ts';
import { within } from './session.ts';

const mostStreams = 64;
/** Statements out at once: a long stream does not hold up all other readers. */
const mostOut = 2;

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
  #out = 0;

  /** @param readMs milliseconds until a statement gives its place back, whatever became of it */
  constructor(pool: pg.Pool, schema: string, readMs: number) {
    this.#pool = pool;
    this.#readMs = readMs;
    this.#text = statements(schema).readWhole;
  }

  /** All events of the stream, in order. */
  read(stream: string): Promise<readonly RecordedEvent[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ stream, resolve, reject });
      if (this.#out === mostOut) return;
      this.#out += 1;
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    // Who asks in the same turn belongs to the same statement.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, mostStreams);
      try {
        const { rows } = await this.#pool.query<EventRow>({
          name: 'read-whole',
          text: this.#text,
          values: [textArray([...new Set(batch.map(({ stream }) => stream))])],
          rowMode: 'array',
          types: bigintTypes,
          ...within(this.#readMs),
        });
        const streams = Map.groupBy(rows.map(toEvent), (event) => event.stream);
        for (const { stream, resolve } of batch) resolve(streams.get(stream) ?? []);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#out -= 1;
  }
}
