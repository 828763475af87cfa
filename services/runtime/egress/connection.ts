/** One keep-alive connection: an undici client whose sockets come from `dial`, carrying one request at a time. */
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type { Client, Dispatcher } from 'undici';
import { type DialOptions, dial } from './dial.ts';
import type { EgressGuard } from './guard.ts';

export interface ConnectionOptions extends DialOptions {
  readonly maxHeaderBytes: number;
  /** Milliseconds a socket without a request is kept when the server says nothing about it, and at most. */
  readonly idleMs: number;
  readonly maxIdleMs: number;
  /** Milliseconds after which a socket takes no further request: a host that moved is followed also under steady traffic. */
  readonly maxAgeMs: number;
}

/** Loaded with the first connection: whoever never calls out, or not yet, does without its 30 MB. */
const require = createRequire(import.meta.url);

export class Connection {
  readonly origin: string;
  readonly #client: Client;
  readonly #maxAgeMs: number;
  #socket: Socket | null = null;
  #connectedAt = 0;
  #bytesBefore = 0;
  #cancelDial: (() => void) | null = null;

  /** `onDisconnect`: its socket is gone, with or without a request on it. */
  constructor(
    guard: EgressGuard,
    url: URL,
    options: ConnectionOptions,
    onDisconnect: (connection: Connection) => void,
  ) {
    this.origin = url.origin;
    this.#maxAgeMs = options.maxAgeMs;
    const undici: typeof import('undici') = require('undici');
    this.#client = new undici.Client(url.origin, {
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: options.maxHeaderBytes,
      keepAliveTimeout: options.idleMs,
      keepAliveMaxTimeout: options.maxIdleMs,
      // Time is kept by the exchange, for the whole of a request and for all requests at once.
      headersTimeout: 0,
      bodyTimeout: 0,
      // The client connects again when an idle socket closed under a request not yet sent: through the guard, as every time.
      connect: (_options, callback) => {
        this.#cancelDial = dial(guard, url, options, (error, socket) => {
          this.#cancelDial = null;
          if (socket === null) return callback(error ?? new Error('no socket'), null);
          this.#socket = socket;
          this.#connectedAt = performance.now();
          this.#bytesBefore = 0;
          callback(null, socket);
        });
      },
    });
    this.#client.on('disconnect', () => onDisconnect(this));
  }

  /** May another request be sent on it? Asked when one ended, and again when the next is there. */
  get reusable(): boolean {
    const socket = this.#socket;
    if (socket === null || socket.destroyed || !socket.writable) return false;
    return performance.now() - this.#connectedAt < this.#maxAgeMs;
  }

  /** Bytes that came since the request began, whatever they are: a parser counts only those of the body. */
  get received(): number {
    return (this.#socket?.bytesRead ?? 0) - this.#bytesBefore;
  }

  send(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#bytesBefore = this.#socket?.bytesRead ?? 0;
    this.#client.dispatch(request, handler);
  }

  /** At once, with a request on it or not. */
  destroy(): void {
    this.#cancelDial?.();
    // NOTE: the client knows its socket only once it is connected; one that is still being made is ended above.
    this.#client.destroy(null, () => {});
  }
}
