import type { LogRecord } from '#contracts/ports/log.ts';
import type { LastEvent } from '#runtime/consuming/same-history.ts';

export interface RelayBatch {
  readonly records: readonly LogRecord[];
  /** Once the records are acknowledged, everything up to here is. */
  readonly upTo: LastEvent;
}

export interface QueueOptions {
  /** Most records of a batch. */
  readonly maxBatch: number;
  /** Most milliseconds a record waits for company. */
  readonly lingerMs: number;
  /** Most records that wait; above it the reader is held back. */
  readonly maxWaiting: number;
  /** And most bytes of them: those of one tenant may be half a megabyte each, and the memory is everybody's. */
  readonly maxWaitingBytes: number;
  /** Milliseconds until a position without records is worth a batch of its own. */
  readonly markerMs: number;
}

const bytesOf = ({ value, metadata }: LogRecord): number => value.byteLength + metadata.byteLength;

/**
 * What was read and is not sent yet, in order. An event without a record (of a stream that has no topic) counts only once everything
 * before it is taken: it never runs ahead of a record.
 */
export class RelayQueue {
  readonly #options: QueueOptions;
  #records: LogRecord[] = [];
  #bytes = 0;
  /** The last event read. */
  #seen: LastEvent | null = null;
  /** The one given out with the last batch. */
  #given: LastEvent | null = null;
  /** When the oldest waiting record came, and the oldest waiting position; monotonic milliseconds. */
  #recordSince = 0;
  #positionSince = 0;
  #wakeReader = () => {};
  #wakeTaker = () => {};
  #ended = false;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#records.length;
  }

  get full(): boolean {
    const { maxWaiting, maxWaitingBytes } = this.#options;
    return this.#records.length >= maxWaiting || this.#bytes >= maxWaitingBytes;
  }

  add(record: LogRecord): void {
    if (this.#records.length === 0) this.#recordSince = performance.now();
    this.#records.push(record);
    this.#bytes += bytesOf(record);
    this.pass({ position: record.position, eventId: record.id });
    if (this.#records.length === 1 || this.#records.length === this.#options.maxBatch) this.#wakeTaker();
  }

  pass(event: LastEvent): void {
    const first = this.#seen === this.#given;
    this.#seen = event;
    if (!first) return;
    this.#positionSince = performance.now();
    this.#wakeTaker();
  }

  /** Resolves when there is room again, or at the end. */
  async room(): Promise<void> {
    while (this.full && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
  }

  /** The next batch, once it is full or old enough; null at the end. One taker at a time. */
  async take(): Promise<RelayBatch | null> {
    const { maxBatch, lingerMs, markerMs } = this.#options;
    while (!this.#ended) {
      const now = performance.now();
      let due = Number.POSITIVE_INFINITY;
      if (this.#records.length >= maxBatch) due = now;
      else if (this.#records.length > 0) due = this.#recordSince + lingerMs;
      else if (this.#seen !== this.#given) due = this.#positionSince + markerMs;
      if (due <= now) return this.#cut(maxBatch);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wakeTaker = resolve;
      const timer = due < Number.POSITIVE_INFINITY ? setTimeout(resolve, Math.ceil(due - now)) : undefined;
      await promise;
      clearTimeout(timer);
    }
    return null;
  }

  /** Wakes everybody who waits; what is left is read again by the next holder. */
  end(): void {
    this.#ended = true;
    this.#wakeReader();
    this.#wakeTaker();
  }

  #cut(maxBatch: number): RelayBatch | null {
    const records = this.#records.splice(0, maxBatch);
    for (const record of records) this.#bytes -= bytesOf(record);
    const last = records.at(-1);
    const isRest = this.#records.length > 0 && last !== undefined;
    const upTo = isRest ? { position: last.position, eventId: last.id } : this.#seen;
    this.#given = upTo;
    this.#recordSince = performance.now();
    this.#positionSince = this.#recordSince;
    this.#wakeReader();
    return upTo === null ? null : { records, upTo };
  }
}
