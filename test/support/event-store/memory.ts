/**
 * The event store in memory: a real adapter with the semantics of EventStoreDB, which passes its port's suite, for unit
 * tests and for the gRPC double.
 * Several handles over one `MemoryEventLog` behave as several processes over one server.
 */
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
  workspaceOf,
} from '#contracts/ports/event-store.ts';
import { checkAppend, conflict } from '#infra/append-rules.ts';

const none: readonly RecordedEvent[] = [];

/** The data: one total order, and each stream's events. Everything is synchronous, so an append is atomic. */
export class MemoryEventLog {
  readonly #all: RecordedEvent[] = [];
  readonly #streams = new Map<string, RecordedEvent[]>();
  readonly #listeners = new Set<() => void>();
  #nextPosition = 0n;

  get all(): readonly RecordedEvent[] {
    return this.#all;
  }

  /** Position that the next event will get. */
  get end(): bigint {
    return this.#nextPosition;
  }

  /** A position beyond the end is allowed: an event may get it later. */
  isPosition(position: bigint): boolean {
    return position >= this.#nextPosition || this.#all[this.indexAfter(position) - 1]?.position === position;
  }

  stream(name: string): readonly RecordedEvent[] {
    return this.#streams.get(name) ?? none;
  }

  /** Index in `all` of the first event after the position. */
  indexAfter(position: bigint | null): number {
    if (position === null) return 0;
    let low = 0;
    let high = this.#all.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#all[middle]?.position ?? 0n) <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Calls back after every append that wrote something. Returns the function that removes the listener. */
  onAppend(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Appends all or none. Checks only the revision, so that a double can write `$` streams through it. An expectation
   * below the head is a repeat if the stored ids are the same, and a conflict otherwise.
   */
  append(stream: string, expected: ExpectedRevision, events: readonly EventToAppend[]): AppendResult {
    const recorded = this.#streams.get(stream) ?? [];
    const at = expected === 'none' ? 0n : expected + 1n;
    const count = BigInt(recorded.length);
    const inPlace = at < count ? recorded.slice(Number(at), Number(at) + events.length) : [];
    if (inPlace.length > 0 && inPlace.length === events.length && inPlace.every((e, i) => e.id === events[i]?.id)) {
      const last = inPlace.at(-1);
      return { revision: at + BigInt(events.length) - 1n, position: last?.position ?? null };
    }
    if (at !== count) throw conflict(stream, expected, count === 0n ? 'none' : count - 1n);
    const created = new Date();
    let position = this.#nextPosition;
    for (const event of events) {
      const data = Uint8Array.from(event.data);
      const metadata = Uint8Array.from(event.metadata);
      position = this.#nextPosition;
      const { id, type } = event;
      const revision = BigInt(recorded.length);
      const written: RecordedEvent = { stream, id, type, data, metadata, revision, position, created };
      recorded.push(written);
      this.#all.push(written);
      // Positions are byte offsets in EventStoreDB: gaps keep callers from relying on +1.
      this.#nextPosition += BigInt(64 + data.byteLength + metadata.byteLength);
    }
    this.#streams.set(stream, recorded);
    for (const listener of [...this.#listeners]) listener();
    return { revision: BigInt(recorded.length) - 1n, position };
  }
}

/** The fault that the next append of a handle meets. */
export type MemoryFault = 'unavailable' | 'reply_lost';

/** Where a read begins. @throws EventStoreError `invalid_position` */
const startOf = (log: MemoryEventLog, { after, from }: ReadStart): number => {
  const position = from ?? after;
  if (position !== null && position >= 0n && !log.isPosition(position)) {
    throw new EventStoreError('invalid_position', `no event begins at position ${position}`);
  }
  return from === undefined ? log.indexAfter(after) : log.indexAfter(from - 1n);
};

const systemEvent = (event: RecordedEvent): boolean => event.stream.startsWith('$');

export class MemoryEventStore implements EventStore {
  readonly log: MemoryEventLog;
  readonly #closed = new AbortController();
  readonly #faults: MemoryFault[] = [];

  constructor(log: MemoryEventLog = new MemoryEventLog()) {
    this.log = log;
  }

  /** Queues a fault: `unavailable` writes nothing, `reply_lost` writes and answers `outcome_unknown`. */
  failNext(fault: MemoryFault): void {
    this.#faults.push(fault);
  }

  async append(stream: string, expected: ExpectedRevision, events: readonly EventToAppend[]): Promise<AppendResult> {
    this.#checkOpen();
    checkAppend(stream, expected, events);
    const fault = this.#faults.shift();
    if (fault === 'unavailable') throw new EventStoreError('unavailable', 'the store does not answer (injected fault)');
    const result = this.log.append(stream, expected, events);
    if (fault === 'reply_lost') throw new EventStoreError('outcome_unknown', 'the reply was lost (injected fault)');
    return result;
  }

  async read(stream: string, options: { readonly from?: bigint; readonly limit?: number } = {}) {
    this.#checkOpen();
    const events = this.log.stream(stream);
    const from = options.from ?? 0n;
    if (from >= BigInt(events.length)) return none;
    return events.slice(Number(from), options.limit === undefined ? undefined : Number(from) + options.limit);
  }

  async readAll(options: ReadStart & { readonly limit: number }) {
    this.#checkOpen();
    const events: RecordedEvent[] = [];
    for (let i = startOf(this.log, options); events.length < options.limit; i++) {
      const event = this.log.all[i];
      if (event === undefined) break;
      if (!systemEvent(event)) events.push(event);
    }
    return events;
  }

  async readWorkspace(
    workspaceId: string,
    options: ReadStart & { readonly limit: number; readonly until?: bigint },
  ): Promise<WorkspacePage> {
    this.#checkOpen();
    const { limit, until } = options;
    const events: RecordedEvent[] = [];
    let next = options.after ?? null;
    for (let i = startOf(this.log, options); events.length < limit; i++) {
      const event = this.log.all[i];
      if (event === undefined || (until !== undefined && event.position > until)) return { events, next, isEnd: true };
      next = event.position;
      if (!systemEvent(event) && workspaceOf(event.metadata) === workspaceId) events.push(event);
    }
    return { events, next, isEnd: false };
  }

  async head() {
    this.#checkOpen();
    return this.log.all.at(-1)?.position ?? null;
  }

  async *subscribe(options: {
    readonly after: bigint | null;
    readonly signal: AbortSignal;
  }): AsyncGenerator<SubscriptionItem> {
    this.#checkOpen();
    const ended = AbortSignal.any([options.signal, this.#closed.signal]);
    let wake = () => {};
    const stopListening = this.log.onAppend(() => wake());
    const onEnd = () => wake();
    ended.addEventListener('abort', onEnd);
    try {
      let next = startOf(this.log, { after: options.after });
      let caughtUp = false;
      while (!ended.aborted) {
        const event = this.log.all[next];
        if (event !== undefined) {
          next++;
          const isAhead = options.after !== null && event.position <= options.after;
          if (!isAhead && !systemEvent(event)) yield { kind: 'event', event };
          continue;
        }
        if (!caughtUp) {
          caughtUp = true;
          yield { kind: 'caughtUp' };
        } else {
          // No await between reading the log and here, so no append can slip past the wake-up.
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      stopListening();
      ended.removeEventListener('abort', onEnd);
    }
  }

  async ping(): Promise<void> {
    this.#checkOpen();
  }

  async close(): Promise<void> {
    this.#closed.abort();
  }

  #checkOpen(): void {
    if (this.#closed.signal.aborted) throw new EventStoreError('unavailable', 'the store is closed');
  }
}
