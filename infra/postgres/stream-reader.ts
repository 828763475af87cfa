/**
 * Callers that read whole streams share statements: requests that arrive while one statement runs are answered together
 * by the next. A statement begins after the call, so a reader sees everything committed before. A stream too long for
 * that is read alone, one such stream at a time: only one long stream is in memory, and short ones never wait for it.
 */
import type pg from 'pg';
import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import { statements, textArray } from './event-store.sql.ts';
import { bigintTypes } from './pool.ts';
import { answeredWithin } from './session.ts';
import { behindEvent, type EventRow, toEvent } from './stored-event.ts';

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
