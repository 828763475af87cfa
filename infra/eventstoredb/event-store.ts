/**
 * The event store on EventStoreDB ≥ 23.10. Appends and reads have a client each: the client's append state is
 * process-wide, and a failing read must not close the connection under an append. The file is long because each call
 * has its own rule for the outcome of a failure.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import db from '@eventstore/db-client';
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { type BackOff, backOff } from '#contracts/base/back-off.ts';
import { within } from '#contracts/base/pause.ts';
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
  workspaceOf,
} from '#contracts/ports/event-store.ts';
import { checkAppend } from '#infra/append-rules.ts';
import { disposeClient, guardedClient, openRead, ready } from '#infra/eventstoredb/client.ts';
import { isAboutPosition, isDeleted, readErrorOf, reconnects, refusalOf } from '#infra/eventstoredb/errors.ts';
import {
  allRequest,
  eventOf,
  headRequest,
  isSystem,
  streamRequest,
  subscribeRequest,
} from '#infra/eventstoredb/wire.ts';
import { readPlacedWorkspace } from '#infra/eventstoredb/workspace-index.ts';
import { scanWorkspace } from '#infra/eventstoredb/workspace-scan.ts';
import type { WorkspacePositions } from '#infra/postgres/workspace-positions.ts';

export interface EventStoreDbOptions {
  /** `esdb://[user:password@]host:port?tls=false`, several hosts, or `esdb+discover://`. */
  readonly url: string;
  /** Milliseconds for one try of an append. Default 3,000. */
  readonly attemptMs?: number;
  /** Milliseconds after which no further try of an append begins. Default 8,000. */
  readonly appendMs?: number;
  /** Milliseconds for one read. Default 10,000. */
  readonly readMs?: number;
  /** The index of workspaces. Without it a read of one workspace scans all events. */
  readonly index?: WorkspacePositions;
}

type Client = db.EventStoreDBClient;

class TimedOut extends Error {}

/** The client accepts metadata bytes only as a plain `Uint8Array`, and would send any other as JSON. */
const plain = (bytes: Uint8Array): Uint8Array =>
  bytes.constructor === Uint8Array ? bytes : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const proposed = ({ id, type, data, metadata }: EventToAppend): db.BinaryEventData => ({
  id,
  type,
  contentType: 'application/octet-stream',
  data: plain(data),
  metadata: plain(metadata),
});

/** Waits between tries of an append, of a subscription and of a read. */
const appendWaits: BackOff = { firstMs: 50, maxMs: 1_000 };
const subscribeWaits: BackOff = { firstMs: 100, maxMs: 5_000 };
const readWaits: BackOff = { firstMs: 50, maxMs: 400 };

/** Streams that are deleted at once. */
const deletesAtOnce = 8;
const nobody: ReadonlySet<string> = new Set();

/** What is left of an event of an erased workspace: its place and its id, as the other store leaves them. */
const erasedEvent = (event: RecordedEvent): RecordedEvent => ({
  ...event,
  ...{ stream: `erased-${event.position}`, revision: 0n, type: 'Erased' },
  ...{ data: Buffer.from('{}'), metadata: Buffer.from('{}') },
});

export class EventStoreDbStore implements EventStore, EventEraser {
  /** In words of the receipt. */
  readonly stays =
    'keeps in EventStoreDB a tombstone of each stream, which has its name, and until a scavenge of every node the bytes of the events, which this installation reads no more';
  readonly #url: string;
  readonly #attemptMs: number;
  readonly #appendMs: number;
  readonly #readMs: number;
  readonly #places: WorkspacePositions | undefined;
  #appends: Client;
  readonly #reads: Client;
  readonly #closed = new AbortController();
  readonly #disposals = new Set<Promise<void>>();

  constructor(options: EventStoreDbOptions) {
    this.#url = options.url;
    this.#attemptMs = options.attemptMs ?? 3_000;
    this.#appendMs = options.appendMs ?? 8_000;
    this.#readMs = options.readMs ?? 10_000;
    this.#places = options.index;
    this.#appends = guardedClient(this.#url);
    this.#reads = guardedClient(this.#url);
  }

  async append(stream: string, expected: ExpectedRevision, events: readonly EventToAppend[]): Promise<AppendResult> {
    this.#checkOpen();
    checkAppend(stream, expected, events);
    const list = events.map(proposed);
    const options = {
      expectedRevision: expected === 'none' ? (db.NO_STREAM as 'no_stream') : expected,
      deadline: this.#attemptMs,
    };
    const until = performance.now() + this.#appendMs;
    // Once a try may have reached the server, no later failure proves that nothing was written.
    let maybeWritten = false;
    for (let attempt = 0; ; attempt++) {
      const client = this.#appends;
      let sent = false;
      let over = false;
      try {
        const done = await within(
          this.#attemptMs,
          ready(client).then(() => {
            // Too late to begin: the caller already counts this try as not sent.
            if (over) throw new TimedOut('given up');
            sent = true;
            maybeWritten = true;
            return client.appendToStream(stream, list, options);
          }),
          () => {
            throw new TimedOut(`no answer within ${this.#attemptMs} ms`);
          },
        );
        return { revision: done.nextExpectedRevision, position: done.position?.commit ?? null };
      } catch (error) {
        over = true;
        const refusal = refusalOf(stream, expected, error);
        if (refusal !== null) throw refusal;
        if (error instanceof TimedOut || (!sent && !reconnects(error))) this.#replace(client);
        const pause = backOff(attempt, appendWaits);
        if (this.#closed.signal.aborted || performance.now() + pause > until) {
          const code = maybeWritten ? 'outcome_unknown' : 'unavailable';
          throw new EventStoreError(code, `append to ${stream}: ${(error as Error).message}`, { cause: error });
        }
        await sleep(pause, undefined, { signal: this.#closed.signal }).catch(() => {});
      }
    }
  }

  async read(stream: string, options: { readonly from?: bigint; readonly limit?: number } = {}) {
    const limit = options.limit ?? Number.MAX_SAFE_INTEGER;
    if (limit <= 0) return [];
    return this.#collect(() => streamRequest(stream, options.from ?? 0n, limit));
  }

  async readAll(options: ReadStart & { readonly limit: number }) {
    const { limit } = options;
    const found: RecordedEvent[] = [];
    const erased = await this.#erased();
    let at = options.from ?? options.after;
    let inclusive = options.from !== undefined;
    while (found.length < limit) {
      // The protocol reads inclusively: the read takes one event more and drops the one at `after`.
      const count = limit - found.length + 1;
      const events = await this.#page(at, count);
      for (const event of events) {
        const isBehind = at === null || event.position > at || (inclusive && event.position === at);
        if (isBehind && !isSystem(event) && found.length < limit) found.push(this.#readable(event, erased));
      }
      if (events.length < count) break;
      at = events.at(-1)?.position ?? at;
      inclusive = false;
    }
    return found;
  }

  readWorkspace(
    workspaceId: string,
    options: ReadStart & { readonly limit: number; readonly until?: bigint },
  ): Promise<WorkspacePage> {
    return this.#places === undefined
      ? scanWorkspace(this, workspaceId, options)
      : readPlacedWorkspace(this, this.#places, workspaceId, options);
  }

  async head(): Promise<bigint | null> {
    const events = await this.#collect(headRequest);
    return events[0]?.position ?? null;
  }

  /**
   * Pulls the items out of the call one by one, so HTTP/2 flow control slows the server down for a slow consumer, and
   * data of an abandoned call is never parsed.
   *
   * It resumes from events alone and drops the server's checkpoints: at the end of a catch-up, 24.10 may send the
   * position that the *next* record will get, and 23.10 resumes after the first record at or behind a position, so that
   * a checkpoint at a record that was scavenged since skips an event.
   */
  async *subscribe(options: {
    readonly after: bigint | null;
    readonly signal: AbortSignal;
  }): AsyncGenerator<SubscriptionItem> {
    this.#checkOpen();
    const ended = AbortSignal.any([options.signal, this.#closed.signal]);
    let taken = options.after;
    let last: RecordedEvent | null = null;
    for (let attempt = 0; !ended.aborted; attempt++) {
      if (attempt > 0) await sleep(backOff(attempt - 1, subscribeWaits), undefined, { signal: ended }).catch(() => {});
      if (ended.aborted) return;
      let cancel = () => {};
      try {
        if (last !== null) await this.#requireEvent(last);
        const call = await openRead(this.#reads, subscribeRequest(taken), null);
        cancel = () => call.cancel();
        ended.addEventListener('abort', cancel);
        for await (const response of call) {
          if (ended.aborted) return;
          attempt = 0;
          const event = eventOf(response);
          if (event !== null) {
            // A broken server may repeat events.
            if (isSystem(event) || (taken !== null && event.position <= taken)) continue;
            // Before the event counts as taken: where this fails, the next subscription begins with it.
            const shown = this.#readable(event, await this.#erased());
            taken = event.position;
            last = event;
            yield { kind: 'event', event: shown };
          } else if (response.hasCaughtUp()) yield { kind: 'caughtUp' };
          if (ended.aborted) return;
        }
      } catch (error) {
        if (ended.aborted) return;
        const known = error instanceof EventStoreError ? error : readErrorOf(error);
        if (known.code !== 'unavailable') throw known;
        if (taken !== null && isAboutPosition(error)) await this.#requireRecord(taken);
      } finally {
        ended.removeEventListener('abort', cancel);
        cancel();
      }
    }
  }

  /** Deletes the streams of these events for ever: a soft delete would keep the last event of each through every scavenge. */
  async erase(events: readonly RecordedEvent[]): Promise<void> {
    const streams = [...new Set(events.map(({ stream }) => stream))];
    for (let at = 0; at < streams.length; at += deletesAtOnce) {
      await Promise.all(streams.slice(at, at + deletesAtOnce).map((stream) => this.#tombstone(stream)));
    }
  }

  async forget(workspaceId: string): Promise<void> {
    await this.#places?.remove(workspaceId);
  }

  /** @throws EventStoreError; a stream that is deleted already stays so */
  async #tombstone(stream: string): Promise<void> {
    const until = performance.now() + this.#appendMs;
    for (let attempt = 0; ; attempt++) {
      this.#checkOpen();
      const client = this.#appends;
      try {
        await within(
          this.#attemptMs,
          ready(client).then(() => client.tombstoneStream(stream, { deadline: this.#attemptMs })),
          () => {
            throw new TimedOut(`no answer within ${this.#attemptMs} ms`);
          },
        );
        return;
      } catch (error) {
        if (isDeleted(error)) return;
        const known = readErrorOf(error);
        const pause = backOff(attempt, appendWaits);
        if (known.code !== 'unavailable' || performance.now() + pause > until) throw known;
        if (error instanceof TimedOut || !reconnects(error)) this.#replace(client);
        await sleep(pause, undefined, { signal: this.#closed.signal }).catch(() => {});
      }
    }
  }

  /** @throws EventStoreError `unavailable` */
  async #erased(): Promise<ReadonlySet<string>> {
    return (
      this.#places?.erased().catch((cause: unknown) => {
        throw new EventStoreError('unavailable', 'which workspaces were erased could not be read', { cause });
      }) ?? nobody
    );
  }

  #readable(event: RecordedEvent, erased: ReadonlySet<string>): RecordedEvent {
    const workspaceId = erased.size === 0 ? null : workspaceOf(event.metadata);
    return workspaceId !== null && erased.has(workspaceId) ? erasedEvent(event) : event;
  }

  async ping(): Promise<void> {
    await this.head();
  }

  async close(): Promise<void> {
    if (!this.#closed.signal.aborted) {
      this.#closed.abort();
      this.#dispose(this.#appends);
      this.#dispose(this.#reads);
    }
    await Promise.all(this.#disposals);
  }

  /**
   * One page of all streams, inclusive. @throws EventStoreError `invalid_position`, also where 23.10 answers only
   * "Error"
   */
  async #page(at: bigint | null, count: number): Promise<RecordedEvent[]> {
    try {
      return await this.#collect(() => allRequest(at, count));
    } catch (error) {
      if (at === null || !(error instanceof EventStoreError && isAboutPosition(error.cause))) throw error;
      // A server that reads its end and keeps failing at this position is healthy: the position is invalid.
      await this.head();
      throw new EventStoreError('invalid_position', `no record begins at position ${at}`, { cause: error });
    }
  }

  /**
   * Requires that the server still has this event. After a restore to an earlier day the subscription would silently
   * skip the new events up to this position.
   */
  async #requireEvent({ position, id }: RecordedEvent): Promise<void> {
    let there: RecordedEvent | undefined;
    // A read that the server ends early looks like an empty one: only repeated empty answers count.
    for (let asked = 0; asked < 3 && there === undefined; asked++) [there] = await this.#page(position, 1);
    if (there?.position === position && there.id === id) return;
    const found = there === undefined ? 'it ends before' : `it has event ${there.id} at ${there.position}`;
    const message = `the store gave event ${id} at position ${position}, and now ${found}: it was restored to an earlier day`;
    throw new EventStoreError('invalid_position', message);
  }

  /**
   * Tests the position by a read, since a refused subscription gives no reason. @throws EventStoreError
   * `invalid_position`
   */
  async #requireRecord(position: bigint): Promise<void> {
    try {
      await this.#page(position, 1);
    } catch (error) {
      if (error instanceof EventStoreError && error.code === 'invalid_position') throw error;
    }
  }

  /** All events of one bounded read, repeated briefly while the client reconnects. */
  async #collect(request: () => ReadReq): Promise<RecordedEvent[]> {
    const until = performance.now() + this.#readMs;
    for (let attempt = 0; ; attempt++) {
      this.#checkOpen();
      let cancel = () => {};
      try {
        const events: RecordedEvent[] = [];
        const call = await openRead(this.#reads, request(), this.#readMs);
        cancel = () => call.cancel();
        this.#closed.signal.addEventListener('abort', cancel);
        for await (const response of call) {
          const event = eventOf(response);
          if (event !== null) events.push(event);
        }
        return events;
      } catch (error) {
        const known = readErrorOf(error);
        if (known.code !== 'unavailable' || attempt >= 3 || performance.now() > until) throw known;
        await sleep(backOff(attempt, readWaits));
      } finally {
        this.#closed.signal.removeEventListener('abort', cancel);
        cancel();
      }
    }
  }

  /** A client that hangs, or caches a failed first call, does not recover: appends go to a new one. */
  #replace(client: Client): void {
    if (client !== this.#appends || this.#closed.signal.aborted) return;
    this.#appends = guardedClient(this.#url);
    // Ends the calls of the old client: pending appends are rejected as unknown and repeated on the new one.
    this.#dispose(client);
  }

  #dispose(client: Client): void {
    const disposal = disposeClient(client)
      .catch(() => {})
      .finally(() => this.#disposals.delete(disposal));
    this.#disposals.add(disposal);
  }

  #checkOpen(): void {
    if (this.#closed.signal.aborted) throw new EventStoreError('unavailable', 'the store is closed');
  }
}
