import type { LogRecord } from '#contracts/ports/log.ts';
import type { LastEvent } from '#runtime/consuming/same-history.ts';

export interface RelayBatch {
  readonly records: readonly LogRecord[];
  /** Once the records are acknowledged, so is everything up to here. */
  readonly upTo: LastEvent;
}

export interface QueueOptions {
  /** Most records of a batch. */
  readonly maxBatch: number;
  /** Most milliseconds that a record waits for others. */
  readonly lingerMs: number;
  /** Most records that wait; above it the reader pauses. */
  readonly maxWaiting: number;
  /** Most bytes of them: records of one tenant may be half a megabyte each, and all tenants share the memory. */
  readonly maxWaitingBytes: number;
  /** Milliseconds until a position without records gets a batch of its own. */
  readonly markerMs: number;
}

const bytesOf = ({ value, metadata }: LogRecord): number => value.byteLength + metadata.byteLength;

/**
 * Records that were read and not sent yet, in order. An event without a record (of a stream without a topic) counts
 * only once everything before it is taken: it never runs ahead of a record.
 */
export class RelayQueue {
  readonly #options: QueueOptions;
  #records: LogRecord[] = [];
  #bytes = 0;
  /** The last event read. */
  #seen: LastEvent | null = null;
  /** The event returned with the last batch. */
  #given: LastEvent | null = null;
  /** When the oldest waiting record arrived, and the oldest waiting position; monotonic milliseconds. */
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

  /** The next batch, once it is full or old enough; null at the end. One caller at a time. */
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

  /** Wakes all waiting callers; the next holder of the lease reads the remaining records again. */
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
