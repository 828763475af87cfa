/** One GET under way: its head, then its body at the reader's pace. */
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

/** Bytes of a body that wait for a reader slower than the server. */
const WAITING_BYTES = 512 << 10;

export class Transfer implements Dispatcher.DispatchHandler {
  /** Rejects with the error that prevented it. */
  readonly head: Promise<Head>;
  /** Errors when the connection breaks before its end. */
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
    // It may break before the caller awaits it.
    this.head.catch(() => undefined);
    this.body.on('error', () => undefined);
    const kept = { idleMs: 1, maxIdleMs: 1, maxAgeMs: 0 };
    this.#connection = new Connection(guard, url, { ...limits, ...kept }, () => {});
    this.#connection.send({ method: 'GET', path: url.pathname + url.search, headers }, this);
  }

  // Its presence selects one of undici's two forms of handler.
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

  /** Ends the transfer at once; call it too when the rest is not needed. */
  end(error: Error): void {
    this.#reject(error);
    this.body.destroy(error);
    this.#connection.destroy();
  }
}
