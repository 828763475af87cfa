/**
 * Answers of the double to reads and subscriptions: forward reads inclusive, subscriptions exclusive, as the server's.
 */
import { randomUUID } from 'node:crypto';
import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import { type ServerWritableStream, status } from '@grpc/grpc-js';
import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import type { MemoryEventLog } from '#test/support/event-store/memory.ts';
import { codeOf, type Faults, failure, streamDeleted } from '#test/support/eventstoredb/faults.ts';
import {
  caughtUpMessage,
  checkpointMessage,
  confirmationMessage,
  eventMessage,
  filterOf,
  notFoundMessage,
  textOf,
} from '#test/support/eventstoredb/messages.ts';

/** The releases whose answers were measured; they differ where a position starts no record and where a catch-up ends. */
export type Release = '23.10' | '24.10';

/** Records that the server reads at once. */
const pageRecords = 32;

/** Writes and waits while the call is full, so that a slow reader slows the double down. */
const send = async (call: ServerWritableStream<ReadReq, ReadResp>, message: ReadResp): Promise<void> => {
  if (call.cancelled || call.destroyed || call.writableEnded || call.write(message)) return;
  const full = Promise.withResolvers<void>();
  const events = ['drain', 'cancelled', 'close', 'error', 'finish'];
  for (const name of events) call.once(name, full.resolve);
  await full.promise;
  for (const name of events) call.removeListener(name, full.resolve);
};

const notLeader = (port: number) => {
  const error = failure(status.NOT_FOUND, 'not-leader', 'Leader info available');
  error.metadata.set('leader-endpoint-host', '127.0.0.1');
  error.metadata.set('leader-endpoint-port', String(port));
  return error;
};

const handlerFault = () => failure(status.UNKNOWN, undefined, 'Exception was thrown by handler.');

/** The server's answer about a position without a record, in the form of each release. */
const invalidPosition = (release: Release, subscription: boolean) => {
  if (!subscription) {
    const why = release === '23.10' ? 'Error' : 'InvalidPosition';
    return failure(status.UNKNOWN, undefined, `Unexpected FilteredReadAllResult: ${why}`);
  }
  return release === '23.10'
    ? handlerFault()
    : failure(status.INVALID_ARGUMENT, undefined, 'Trying to read from an invalid position.');
};

/** Type of the record that a server writes behind the events of a stream which is deleted for ever. */
export const tombstoneType = '$streamDeleted';

export const isTombstoned = (log: MemoryEventLog, stream: string): boolean =>
  log.stream(stream).at(-1)?.type === tombstoneType;

export class Reads {
  readonly subscriptions = new Set<ServerWritableStream<ReadReq, ReadResp>>();
  /** Events written to the open subscriptions: those that consumers took, and those on the way. */
  handedOver = 0;
  readonly #log: MemoryEventLog;
  readonly #faults: Faults;
  readonly #release: Release;
  readonly #leader: number | null;
  readonly #contentTypeOf: (id: string) => string;

  constructor(
    log: MemoryEventLog,
    faults: Faults,
    release: Release,
    leader: number | null,
    contentTypeOf: (id: string) => string,
  ) {
    this.#leader = leader;
    this.#log = log;
    this.#faults = faults;
    this.#release = release;
    this.#contentTypeOf = contentTypeOf;
  }

  async answer(call: ServerWritableStream<ReadReq, ReadResp>): Promise<void> {
    call.on('error', () => {});
    if (this.#leader !== null && call.metadata.get('requires-leader').includes('true')) {
      return void call.emit('error', notLeader(this.#leader));
    }
    const fault = this.#faults.reads.shift();
    if (fault === 'hang') return;
    if (fault === 'end_silently') return void call.end();
    if (fault === 'access_denied') return void call.emit('error', failure(status.PERMISSION_DENIED, 'access-denied'));
    if (fault === 'handler') return void call.emit('error', handlerFault());
    if (fault !== undefined) return void call.emit('error', failure(codeOf[fault] ?? status.UNKNOWN));
    const options = call.request.getOptions();
    if (options === undefined) return void call.emit('error', failure(status.INVALID_ARGUMENT));
    const position = options.getAll()?.getPosition();
    if (position !== undefined && !this.#log.isPosition(BigInt(position.getCommitPosition()))) {
      return void call.emit('error', invalidPosition(this.#release, options.hasSubscription()));
    }
    if (options.hasSubscription()) return this.#subscribe(call, options);
    const named = textOf(options.getStream()?.getStreamIdentifier()?.getStreamName_asU8() ?? new Uint8Array());
    // Of a deleted stream all its events stay among those of all streams until a scavenge, and behind them its tombstone.
    if (options.hasStream() && isTombstoned(this.#log, named)) return void call.emit('error', streamDeleted(named));
    const limit = Number(options.getCount());
    const backwards = options.getReadDirection() === 1;
    const source = options.hasStream() ? this.#streamEvents(options, backwards) : this.#allEvents(options, backwards);
    if (source === null) {
      await send(call, notFoundMessage(named));
    }
    const filter = filterOf(options);
    let sent = 0;
    for (const event of source ?? []) {
      if (sent >= limit || call.cancelled) break;
      if (filter !== null && !filter.passes(event)) continue;
      sent++;
      await send(call, eventMessage(event, this.#contentTypeOf(event.id)));
    }
    call.end();
  }

  /** After a whole number of pages the head of 24.10 gives the position of the next record, and prepare 0. */
  #endOfCatchUp(considered: number): ReadResp {
    const last = this.#log.all.at(-1)?.position ?? 0n;
    return considered % pageRecords === 0 ? checkpointMessage(this.#log.end, 0n) : checkpointMessage(last);
  }

  /** Null for a stream that does not exist. */
  #streamEvents(options: ReadReq.Options, backwards: boolean): readonly RecordedEvent[] | null {
    const of = options.getStream();
    const events = this.#log.stream(textOf(of?.getStreamIdentifier()?.getStreamName_asU8() ?? new Uint8Array()));
    if (events.length === 0) return null;
    const revision = of?.hasRevision() ? BigInt(of.getRevision()) : null;
    if (!backwards) return events.filter((e) => (of?.hasEnd() ? false : revision === null || e.revision >= revision));
    return events.filter((e) => (of?.hasStart() ? false : revision === null || e.revision <= revision)).reverse();
  }

  /** Forwards from a position inclusive, backwards exclusive, as the server reads. */
  #allEvents(options: ReadReq.Options, backwards: boolean): Iterable<RecordedEvent> {
    const { all } = this.#log;
    const of = options.getAll();
    const position = of?.getPosition();
    let start = of?.hasEnd() ? all.length : 0;
    if (position !== undefined) start = this.#log.indexAfter(BigInt(position.getCommitPosition()) - 1n);
    return (function* () {
      const step = backwards ? -1 : 1;
      for (let i = backwards ? start - 1 : start; ; i += step) {
        const event = all[i];
        if (event === undefined) return;
        yield event;
      }
    })();
  }

  async #subscribe(call: ServerWritableStream<ReadReq, ReadResp>, options: ReadReq.Options): Promise<void> {
    const filter = filterOf(options);
    const after = options.getAll()?.getPosition();
    let next = options.getAll()?.hasEnd() ? this.#log.all.length : 0;
    const taken = after === undefined ? null : BigInt(after.getCommitPosition());
    if (taken !== null) next = this.#log.indexAfter(taken);
    let wake = () => {};
    const stopListening = this.#log.onAppend(() => wake());
    let gone = false;
    let mine = 0;
    const leave = () => {
      gone = true;
      wake();
    };
    for (const name of ['cancelled', 'close', 'error', 'finish']) call.on(name, leave);
    this.subscriptions.add(call);
    try {
      await send(call, confirmationMessage(randomUUID()));
      let considered = 0;
      let caughtUp = false;
      while (!gone) {
        const event = this.#log.all[next];
        if (event === undefined) {
          if (!caughtUp) {
            if (this.#release === '24.10' && considered > 0) await send(call, this.#endOfCatchUp(considered));
            await send(call, caughtUpMessage());
          }
          caughtUp = true;
          if (this.#log.all[next] !== undefined || gone) continue;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          continue;
        }
        next++;
        // Positions up to the requested one count as taken, also where the store had not reached it yet.
        if (taken !== null && event.position <= taken) continue;
        if (filter?.passes(event) ?? true) {
          for (let times = this.#faults.deliverTwice ? 2 : 1; times > 0 && !gone; times--) {
            this.handedOver++;
            mine++;
            await send(call, eventMessage(event, this.#contentTypeOf(event.id)));
          }
        }
        considered++;
        if (filter !== null && considered % filter.interval === 0 && !gone) {
          await send(call, checkpointMessage(event.position));
        }
      }
    } finally {
      this.handedOver -= mine;
      this.subscriptions.delete(call);
      stopListening();
    }
  }
}
