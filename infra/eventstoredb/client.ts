/**
 * Makes the append path of `@eventstore/db-client` 6.2.1 safe. The version is pinned: this file patches internals of
 * the client, and `guardedClient` refuses to start where they differ.
 *
 * Four faults of that version, and the remedy at the one place where gRPC clients are made:
 * - a reply to an append that no caller awaits throws in a stream listener and would end the process → dropped;
 * - a write that waits for `drain` while the stream fails becomes an unhandled rejection → writes never wait;
 * - a server that ends the append stream without an error leaves its appends waiting for ever → made an error;
 * - an append whose connection closes before it begins throws uncaught, and waits for ever → made an error.
 * In each case the append settles by its caller's own deadline or by the error, as *unknown*, and is repeated.
 */
import { Writable } from 'node:stream';
import db from '@eventstore/db-client';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { BatchAppendReq, ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import {
  type CallOptions,
  type Channel,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientWritableStream,
  Metadata,
  status,
} from '@grpc/grpc-js';

interface Grpc {
  getChannel(): Channel;
  batchAppend(...args: unknown[]): ClientDuplexStream<unknown, unknown>;
  append(...args: unknown[]): ClientWritableStream<unknown>;
  read(request: ReadReq, metadata: Metadata, options: CallOptions): ClientReadableStream<ReadResp>;
}

interface Internals {
  readonly capabilities: Promise<unknown>;
  getGRPCClient(service: unknown, name: string): Promise<unknown>;
  GRPCStreamCreator<T>(service: unknown, name: string, create: (grpc: Grpc) => T): () => Promise<T>;
  callArguments(options: object, call: CallOptions): [Metadata, CallOptions];
}

/** The present connection of each client; the client itself closes those it leaves. */
const channels = new WeakMap<db.EventStoreDBClient, Channel>();

const internals = (client: db.EventStoreDBClient): Internals => client as unknown as Internals;

/** Writes of a call never report a full buffer: callers bound the bytes in flight, so no write waits for a `drain`. */
const neverFull = <S extends { write(...args: never[]): boolean }>(call: S): S => {
  const write = call.write.bind(call);
  call.write = (...args: never[]) => {
    write(...args);
    return true;
  };
  return call;
};

/** The client sends bytes as binary; JSON is marked as such for the store's own tools. */
const markJson = (request: BatchAppendReq): void => {
  for (const message of request.getProposedMessagesList?.() ?? []) {
    if (message.getData_asU8()[0] === 0x7b) message.getMetadataMap().set('content-type', 'application/json');
  }
};

/** A stream that discards its writes. */
const unsent = (): ClientWritableStream<unknown> =>
  new Writable({ objectMode: true, write: (_chunk, _encoding, done) => done() }) as ClientWritableStream<unknown>;

const guardBatch = (call: ClientDuplexStream<unknown, unknown>): ClientDuplexStream<unknown, unknown> => {
  const on = call.on.bind(call);
  const { write } = neverFull(call);
  call.write = ((request: BatchAppendReq, ...rest: never[]) => {
    markJson(request);
    return write(request, ...rest);
  }) as typeof call.write;
  call.on = ((name: string, listener: (...args: unknown[]) => void) => {
    if (name !== 'data') return on(name, listener);
    return on(name, (...args) => {
      try {
        listener(...args);
      } catch {
        // No caller awaits this reply: its append settled as unknown and is repeated with the same ids.
      }
    });
  }) as typeof call.on;
  on('status', (ended: { code: number }) => {
    if (ended.code !== status.OK) return;
    const details = 'the server ended the append stream';
    const code = status.UNAVAILABLE;
    call.emit('error', Object.assign(new Error(details), { code, details, metadata: new Metadata() }));
  });
  // The client listens to errors for its appends; this listener catches errors that come after it has left the call.
  on('error', () => {});
  return call;
};

const guard = (grpc: Grpc): Grpc => {
  if (Object.hasOwn(grpc, 'batchAppend')) return grpc;
  const { append, batchAppend } = grpc;
  grpc.batchAppend = (...args) => guardBatch(batchAppend.apply(grpc, args));
  grpc.append = (...args) => {
    try {
      return neverFull(append.apply(grpc, args)).on('error', () => {});
    } catch (error) {
      const answer = args.at(-1) as (error: unknown) => void;
      answer(error);
      return unsent();
    }
  };
  return grpc;
};

export const guardedClient = (url: string): db.EventStoreDBClient => {
  const client = db.EventStoreDBClient.connectionString(url);
  const inside = internals(client);
  for (const name of ['getGRPCClient', 'GRPCStreamCreator', 'callArguments'] as const) {
    if (typeof inside[name] !== 'function') throw new Error(`@eventstore/db-client has no ${name}: not version 6.2.1`);
  }
  const getGRPCClient = inside.getGRPCClient.bind(inside);
  inside.getGRPCClient = async (service, name) => {
    const grpc = (await getGRPCClient(service, name)) as Grpc;
    channels.set(client, grpc.getChannel());
    return service === streamsGrpc.StreamsClient ? guard(grpc) : grpc;
  };
  return client;
};

/** Resolves once the client knows the server's features; a rejection proves that no part of the append was sent. */
export const ready = (client: db.EventStoreDBClient): Promise<unknown> => internals(client).capabilities;

/**
 * One `Read` call on the client's connection, as messages of the protocol: the client's own readers parse metadata (and
 * JSON data) into objects, which lose the stored bytes. The caller cancels it. Only the leader answers a bounded read,
 * since commands decide by it and a follower may lag. Any node answers a subscription.
 * @param deadlineMs for the whole call; null for a subscription
 */
export const openRead = async (
  client: db.EventStoreDBClient,
  request: ReadReq,
  deadlineMs: number | null,
): Promise<ClientReadableStream<ReadResp>> => {
  const deadline = deadlineMs === null ? Number.POSITIVE_INFINITY : Date.now() + deadlineMs;
  const inside = internals(client);
  const call = await inside.GRPCStreamCreator(streamsGrpc.StreamsClient, 'read', (grpc) =>
    grpc.read(request, ...inside.callArguments({ requiresLeader: deadlineMs !== null }, { deadline })),
  )();
  // An error may come after the reader has left the call; without a listener it would end the process.
  return call.on('error', () => {});
};

/** Ends the client's calls and its connection; pending calls are rejected. */
export const disposeClient = async (client: db.EventStoreDBClient): Promise<void> => {
  await client.dispose();
  channels.get(client)?.close();
};
