/** One GET under way: its head, then its body at the pace at which somebody reads it. */
import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { Connection, type ConnectionOptions } from './connection.ts';
import type { EgressGuard } from './guard.ts';

export interface Head {
  readonly status: number;
  /** The first value of each, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Bytes of a body that wait for a reader who is slower than the server. */
const WAITING_BYTES = 512 << 10;

export class Transfer implements Dispatcher.DispatchHandler {
  /** Rejects with what went wrong before it came. */
  readonly head: Promise<Head>;
  /** Errors where the connection breaks before its end. */
  readonly body: Readable;
  readonly #connection: Connection;
  #controller: Dispatcher.DispatchController | null = null;
  #resolve: (head: Head) => void = () => {};
  #reject: (error: Error) => void = () => {};

  /** @param url checked by the guard. */
  constructor(
    guard: EgressGuard,
    url: URL,
    headers: Readonly<Record<string, string>>,
    limits: Pick<ConnectionOptions, 'connectMs' | 'connectTo' | 'maxHeaderBytes'>,
  ) {
    this.head = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.body = new Readable({ highWaterMark: WAITING_BYTES, read: () => this.#controller?.resume() });
    // It may break while nobody reads.
    this.head.catch(() => undefined);
    this.body.on('error', () => undefined);
    const kept = { idleMs: 1, maxIdleMs: 1, maxAgeMs: 0 };
    this.#connection = new Connection(guard, url, { ...limits, ...kept }, () => {});
    this.#connection.send({ method: 'GET', path: url.pathname + url.search, headers }, this);
  }

  // Its presence tells undici which of its two forms of handler this is.
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
  }

  onResponseStart(_controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    // 1xx come before the answer, and as often as the server likes.
    if (status < 200) return;
    const first = Object.entries(headers).flatMap(([name, value]) => {
      const one = Array.isArray(value) ? value[0] : value;
      return one === undefined ? [] : [[name, one] as const];
    });
    this.#resolve({ status, headers: Object.fromEntries(first) });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.body.push(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    this.body.push(null);
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.end(error);
  }

  /** At once, whatever is under way; also what must be called when there is no more use for it. */
  end(error: Error): void {
    this.#reject(error);
    this.body.destroy(error);
    this.#connection.destroy();
  }
}
