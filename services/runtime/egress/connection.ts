/** One keep-alive connection: an undici client whose sockets come from `dial`, with one request at a time. */
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type { Client, Dispatcher } from 'undici';
import { type DialOptions, dial } from './dial.ts';
import type { EgressGuard } from './guard.ts';

export interface ConnectionOptions extends DialOptions {
  readonly maxHeaderBytes: number;
  /** Milliseconds that an idle socket is kept: the default, and the upper bound of the server's own value. */
  readonly idleMs: number;
  readonly maxIdleMs: number;
  /**
   * Milliseconds after which a socket takes no further request: so a host that moved is followed under steady traffic
   * too.
   */
  readonly maxAgeMs: number;
}

const require = createRequire(import.meta.url);
let loaded: typeof import('undici') | null = null;

/**
 * Loaded with the first connection: a process without calls to the outside saves its 30 MB. It takes a third of a second,
 * so a process that knows of calls at an instant loads it before.
 */
export const loadHttpClient = (): typeof import('undici') => {
  loaded ??= require('undici') as typeof import('undici');
  return loaded;
};

/** One for all: without it the client makes an error with a stack for each connection. */
const ended = new Error('the connection is no longer needed');

export class Connection {
  readonly origin: string;
  readonly #client: Client;
  readonly #maxAgeMs: number;
  #socket: Socket | null = null;
  #connectedAt = 0;
  #bytesBefore = 0;
  #cancelDial: (() => void) | null = null;

  /** `onDisconnect`: the socket is closed, with or without a request on it. */
  constructor(
    guard: EgressGuard,
    url: URL,
    options: ConnectionOptions,
    onDisconnect: (connection: Connection) => void,
  ) {
    this.origin = url.origin;
    this.#maxAgeMs = options.maxAgeMs;
    const { Client } = loadHttpClient();
    this.#client = new Client(url.origin, {
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: options.maxHeaderBytes,
      keepAliveTimeout: options.idleMs,
      keepAliveMaxTimeout: options.maxIdleMs,
      // The exchange keeps the time, for the whole request and for all requests at once.
      headersTimeout: 0,
      bodyTimeout: 0,
      // The client reconnects when an idle socket closed under a request not yet sent: through the guard, as every
      // time.
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

  /** Whether a socket was opened: from then on a request may be on its way. */
  get isConnected(): boolean {
    return this.#socket !== null;
  }

  /** Whether it may take another request. Checked when a request ends, and again when the next one comes. */
  get reusable(): boolean {
    const socket = this.#socket;
    if (socket === null || socket.destroyed || !socket.writable) return false;
    return performance.now() - this.#connectedAt < this.#maxAgeMs;
  }

  /** All bytes since the request began: a parser counts only those of the body. */
  get received(): number {
    return (this.#socket?.bytesRead ?? 0) - this.#bytesBefore;
  }

  send(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#bytesBefore = this.#socket?.bytesRead ?? 0;
    this.#client.dispatch(request, handler);
  }

  /** Ends at once, with or without a request. */
  destroy(): void {
    this.#cancelDial?.();
    // NOTE: the client knows its socket only once it is connected; one that still connects is ended above.
    this.#client.destroy(ended, () => {});
  }
}
