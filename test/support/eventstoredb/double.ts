/**
 * A stand-in for the EventStoreDB server, over its real protocol: a gRPC server on the client's own stubs, around the
 * in-memory adapter's log. Its answers follow the server's sources; it refuses what it does not implement.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import featuresGrpc from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import features from '@eventstore/db-client/generated/serverfeatures_pb.js';
import type { Empty } from '@eventstore/db-client/generated/shared_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type {
  AppendReq,
  AppendResp,
  BatchAppendReq,
  BatchAppendResp,
  ReadReq,
  ReadResp,
  TombstoneReq,
  TombstoneResp,
} from '@eventstore/db-client/generated/streams_pb.js';
import {
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { EventStoreError, type EventToAppend, type ExpectedRevision } from '#contracts/ports/event-store.ts';
import { MemoryEventLog } from '#test/support/event-store/memory.ts';
import { type AppendFault, codeOf, Faults, failure, streamDeleted } from '#test/support/eventstoredb/faults.ts';
import {
  batchAnswer,
  expectedOf,
  type Outcome,
  proposedEvent,
  textOf,
  tombstoneAnswer,
  unaryAnswer,
} from '#test/support/eventstoredb/messages.ts';
import { isTombstoned, Reads, type Release, tombstoneType } from '#test/support/eventstoredb/reads.ts';

export interface DoubleOptions {
  /** Default 0: a free one. */
  readonly port?: number;
  /** Whether the server reports the batch append; without it the client appends call by call. Default true. */
  readonly batch?: boolean;
  /** The release whose answers about positions and checkpoints it gives. Default 24.10. */
  readonly release?: Release;
  /** Port of its leader: a follower refuses calls that require the leader. */
  readonly leader?: number;
  /** File of acknowledged appends, one a line, read at the start. Without it the data dies with the process. */
  readonly journal?: string;
  /** Data, metadata and twice the type names of one append, in bytes. Default 1 MiB, as the server's. */
  readonly maxAppendBytes?: number;
}

type Proposed = EventToAppend & { readonly contentType?: string };

interface JournalLine {
  readonly stream: string;
  readonly expected: string;
  readonly created: number;
  readonly events: readonly { id: string; type: string; data: string; metadata: string; contentType: string }[];
}

const beforeCommit: readonly AppendFault[] = ['hang', 'unavailable', 'aborted', 'cancelled', 'internal'];

export class EventStoreDouble {
  readonly log = new MemoryEventLog();
  readonly faults = new Faults();
  /** Appends that reached the server, repeats included. */
  received = 0;
  readonly #batch: boolean;
  readonly #maxAppendBytes: number;
  readonly #contentTypes = new Map<string, string>();
  readonly #grpc = new Server();
  readonly #sockets = new Set<Socket>();
  readonly #release: Release;
  readonly #reads: Reads;
  #listener: NetServer | null = null;
  #port: number;
  #journal: number | null = null;

  private constructor(options: DoubleOptions) {
    this.#batch = options.batch ?? true;
    this.#release = options.release ?? '24.10';
    this.#reads = new Reads(this.log, this.faults, this.#release, options.leader ?? null, (id) =>
      this.contentTypeOf(id),
    );
    this.#maxAppendBytes = options.maxAppendBytes ?? 1_048_576;
    this.#port = options.port ?? 0;
    if (options.journal !== undefined) this.#openJournal(options.journal);
    this.#grpc.addService(featuresGrpc.ServerFeaturesService, {
      getSupportedMethods: (
        _: { request: Empty },
        answer: sendUnaryData<InstanceType<typeof features.SupportedMethods>>,
      ) => this.#features(answer),
    });
    const unimplemented = (_: unknown, answer: sendUnaryData<never>) => answer(failure(status.UNIMPLEMENTED));
    this.#grpc.addService(streamsGrpc.StreamsService, {
      append: (call: ServerReadableStream<AppendReq, AppendResp>, answer: sendUnaryData<AppendResp>) =>
        this.#append(call, answer),
      batchAppend: (call: ServerDuplexStream<BatchAppendReq, BatchAppendResp>) => this.#batchAppend(call),
      read: (call: ServerWritableStream<ReadReq, ReadResp>) => void this.#reads.answer(call),
      delete: unimplemented,
      tombstone: (call: { request: TombstoneReq }, answer: sendUnaryData<TombstoneResp>) =>
        this.#tombstone(call.request, answer),
    });
  }

  static async start(options: DoubleOptions = {}): Promise<EventStoreDouble> {
    const double = new EventStoreDouble(options);
    await double.listen();
    return double;
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `esdb://127.0.0.1:${this.#port}?tls=false`;
  }

  /** Accepts connections, on the former port if there was one. */
  async listen(): Promise<void> {
    const injector = this.#grpc.createConnectionInjector(ServerCredentials.createInsecure());
    const listener = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => {});
      socket.setNoDelay(true);
      injector.injectConnection(socket);
    });
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject);
      listener.listen(this.#port, '127.0.0.1', resolve);
    });
    const address = listener.address();
    if (address !== null && typeof address === 'object') this.#port = address.port;
    this.#listener = listener;
  }

  killConnections(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Refuses connections until `listen`; the data stays. */
  async disconnect(): Promise<void> {
    const listener = this.#listener;
    this.#listener = null;
    this.killConnections();
    if (listener !== null) await new Promise((resolve) => listener.close(resolve));
  }

  /** Ends every subscription: cleanly when no status is given. */
  endSubscriptions(fault?: 'unavailable' | 'aborted' | 'cancelled'): void {
    for (const call of this.#reads.subscriptions) {
      if (fault === undefined) call.end();
      else call.emit('error', failure(codeOf[fault] ?? status.UNKNOWN));
    }
  }

  get subscriptions(): number {
    return this.#reads.subscriptions.size;
  }

  /** Events written to the open subscriptions: those that consumers took, and those on the way. */
  get handedOver(): number {
    return this.#reads.handedOver;
  }

  contentTypeOf(id: string): string {
    return this.#contentTypes.get(id) ?? 'application/json';
  }

  async stop(): Promise<void> {
    await this.disconnect();
    this.#grpc.forceShutdown();
    if (this.#journal !== null) closeSync(this.#journal);
    this.#journal = null;
  }

  #openJournal(file: string): void {
    if (existsSync(file)) {
      for (const line of readFileSync(file, 'utf8').split('\n')) {
        // The last line of a killed process may be torn: it was never acknowledged.
        const entry = parsed(line);
        if (entry === null) continue;
        const events = entry.events.map((e) => ({
          ...e,
          data: Buffer.from(e.data, 'base64'),
          metadata: Buffer.from(e.metadata, 'base64'),
          partitionKey: '',
        }));
        const expected = entry.expected === 'none' ? 'none' : BigInt(entry.expected);
        this.log.append(entry.stream, expected, events);
        for (const event of events) this.#contentTypes.set(event.id, event.contentType);
        const created = new Date(entry.created);
        for (const event of this.log.all.slice(-events.length)) (event as { created: Date }).created = created;
      }
    }
    this.#journal = openSync(file, 'a');
    // Closes a torn line, so that the next one is whole.
    writeSync(this.#journal, '\n');
  }

  #commit(stream: string, expected: ExpectedRevision, events: readonly Proposed[]): Outcome {
    const bytes = events.reduce((sum, e) => sum + e.data.length + e.metadata.length + 2 * e.type.length, 0);
    if (bytes > this.#maxAppendBytes) return { kind: 'too_large', max: this.#maxAppendBytes };
    if (isTombstoned(this.log, stream)) return { kind: 'deleted' };
    try {
      const before = this.log.all.length;
      const result = this.log.append(stream, expected, events);
      if (this.log.all.length > before) this.#record(stream, expected, events);
      return { kind: 'written', result };
    } catch (error) {
      if (!(error instanceof EventStoreError)) throw error;
      return { kind: 'wrong', expected, actual: error.actual ?? 'none' };
    }
  }

  #record(stream: string, expected: ExpectedRevision, events: readonly Proposed[]): void {
    for (const { id, contentType } of events) {
      if (contentType !== undefined && contentType !== 'application/json') this.#contentTypes.set(id, contentType);
    }
    if (this.#journal === null) return;
    const line: JournalLine = {
      stream,
      expected: String(expected),
      created: this.log.all.at(-1)?.created.getTime() ?? 0,
      events: events.map((e) => ({
        id: e.id,
        type: e.type,
        data: Buffer.from(e.data).toString('base64'),
        metadata: Buffer.from(e.metadata).toString('base64'),
        contentType: e.contentType ?? 'application/json',
      })),
    };
    writeSync(this.#journal, `${JSON.stringify(line)}\n`);
  }

  #features(answer: sendUnaryData<InstanceType<typeof features.SupportedMethods>>): void {
    const code = this.faults.features.shift();
    if (code !== undefined) {
      answer(failure(code));
      return;
    }
    const supported = new features.SupportedMethods();
    supported.setEventStoreServerVersion(`${this.#release}.0`);
    for (const name of this.#batch ? ['append', 'batchappend', 'read'] : ['append', 'read']) {
      const method = new features.SupportedMethod();
      method.setServiceName('event_store.client.streams.streams');
      method.setMethodName(name);
      supported.addMethods(method);
    }
    answer(null, supported);
  }

  /** Commits as far as the fault of this append allows. Null: no answer of any kind. */
  async #work(
    stream: string,
    expected: ExpectedRevision,
    events: readonly Proposed[],
  ): Promise<{ fault: AppendFault | undefined; outcome: Outcome | null }> {
    this.received++;
    const fault = this.faults.appends.shift();
    if (this.faults.appendDelayMs > 0) await sleep(this.faults.appendDelayMs);
    if (fault !== undefined && beforeCommit.includes(fault)) return { fault, outcome: null };
    if (fault === 'busy') return { fault, outcome: { kind: 'busy' } };
    const outcome = this.#commit(stream, expected, events);
    if (fault === 'cut_after_commit') this.killConnections();
    const answered = fault === undefined || fault === 'answer_twice';
    return { fault, outcome: answered ? outcome : null };
  }

  #append(call: ServerReadableStream<AppendReq, AppendResp>, answer: sendUnaryData<AppendResp>): void {
    let stream = '';
    let expected: ExpectedRevision = 'none';
    const events: Proposed[] = [];
    call.on('error', () => {});
    call.on('data', (request: AppendReq) => {
      const options = request.getOptions();
      const message = request.getProposedMessage();
      if (options !== undefined) {
        stream = textOf(options.getStreamIdentifier()?.getStreamName_asU8() ?? new Uint8Array());
        expected = expectedOf(options);
      }
      if (message !== undefined) events.push(proposedEvent(message));
    });
    call.on('end', async () => {
      // NOTE: a call whose connection was cut also ends, with a part of its events, and is cancelled a moment later. An
      // append is all or nothing, so check again after that moment.
      await setImmediate();
      if (call.cancelled) return;
      const { fault, outcome } = await this.#work(stream, expected, events);
      const code = fault === undefined ? undefined : codeOf[fault];
      if (code !== undefined) return answer(failure(code));
      // A unary call cannot end without an answer: a cancellation by the server comes nearest.
      if (fault === 'end_silently') return answer(failure(status.CANCELLED));
      if (outcome === null) return;
      if (outcome.kind === 'too_large') {
        const error = failure(status.INVALID_ARGUMENT, 'maximum-append-size-exceeded');
        error.metadata.set('maximum-append-size', String(outcome.max));
        return answer(error);
      }
      if (outcome.kind === 'busy') return answer(failure(status.UNAVAILABLE));
      if (outcome.kind === 'deleted') return answer(streamDeleted(stream));
      answer(null, unaryAnswer(outcome));
    });
  }

  /** Deletes a stream for ever: a record of the kind that the server writes stands behind its events. */
  #tombstone(request: TombstoneReq, answer: sendUnaryData<TombstoneResp>): void {
    const stream = textOf(request.getOptions()?.getStreamIdentifier()?.getStreamName_asU8() ?? new Uint8Array());
    const fault = this.faults.deletes.shift();
    if (fault === 'cut') return void this.killConnections();
    if (isTombstoned(this.log, stream)) return void answer(streamDeleted(stream));
    const last = this.log.stream(stream).at(-1)?.revision ?? null;
    const nothing = { data: new Uint8Array(), metadata: new Uint8Array(), partitionKey: '' };
    this.#commit(stream, last ?? 'none', [{ id: randomUUID(), type: tombstoneType, ...nothing }]);
    if (fault === 'cut_after_commit') return void this.killConnections();
    answer(null, tombstoneAnswer(this.log.all.at(-1)?.position ?? 0n));
  }

  #batchAppend(call: ServerDuplexStream<BatchAppendReq, BatchAppendResp>): void {
    interface Open {
      stream: string;
      expected: ExpectedRevision;
      events: Proposed[];
    }
    const open = new Map<string, Open>();
    call.on('error', () => {});
    call.on('data', async (request: BatchAppendReq) => {
      const id = request.getCorrelationId()?.getString() ?? '';
      const options = request.getOptions();
      if (options !== undefined) {
        const stream = textOf(options.getStreamIdentifier()?.getStreamName_asU8() ?? new Uint8Array());
        open.set(id, { stream, expected: expectedOf(options), events: [] });
      }
      const append = open.get(id);
      if (append === undefined) return;
      append.events.push(...request.getProposedMessagesList().map(proposedEvent));
      if (!request.getIsFinal()) return;
      open.delete(id);
      const { fault, outcome } = await this.#work(append.stream, append.expected, append.events);
      const code = fault === undefined ? undefined : codeOf[fault];
      if (code !== undefined) return void call.emit('error', failure(code));
      if (fault === 'end_silently') return void call.end();
      if (outcome === null || call.cancelled) return;
      for (let times = fault === 'answer_twice' ? 2 : 1; times > 0; times--) {
        call.write(batchAnswer(id, append.stream, outcome));
      }
    });
    call.on('end', () => call.end());
  }
}

const parsed = (line: string): JournalLine | null => {
  if (line === '') return null;
  try {
    return JSON.parse(line) as JournalLine;
  } catch {
    return null;
  }
};
