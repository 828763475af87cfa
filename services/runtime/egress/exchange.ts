/**
 * One request to an untrusted receiver and its answer, within a time and a size. It never throws for a fault of the
 * network. The caller bounds the concurrency: an exchange in flight has its own connection, and only idle connections
 * are limited here, so no exchange waits behind a slow receiver.
 */
import { Connection } from './connection.ts';
import type { DialOptions } from './dial.ts';
import { type ExchangeResult, Flight } from './flight.ts';
import { type EgressGuard, NotAllowed } from './guard.ts';

export type { ExchangeError, ExchangeResult } from './flight.ts';

export interface ExchangeOptions extends Partial<DialOptions> {
  /** Milliseconds for everything, from the lookup to the last byte of the body; default 15,000. Precise to 50 ms. */
  readonly totalMs?: number;
  /** Default 16 KiB; a longer body is cut, and its connection closed. */
  readonly maxBodyBytes?: number;
  /** Default 16 KiB of status line and headers; more is a bad response. */
  readonly maxHeaderBytes?: number;
  /** Lower-case names; default `retry-after`, `webhook-delivery`, `date`. */
  readonly keepHeaders?: readonly string[];
  /** Idle connections kept per origin and in total; default 64 and 1,024. */
  readonly maxIdlePerOrigin?: number;
  readonly maxIdle?: number;
  /** See ConnectionOptions; default 4,000, 60,000 and 300,000. */
  readonly idleMs?: number;
  readonly maxIdleMs?: number;
  readonly maxAgeMs?: number;
}

export const EXCHANGE_DEFAULTS = {
  connectMs: 5_000,
  totalMs: 15_000,
  maxBodyBytes: 16_384,
  maxHeaderBytes: 16_384,
  keepHeaders: ['retry-after', 'webhook-delivery', 'date'] as readonly string[],
  maxIdlePerOrigin: 64,
  maxIdle: 1_024,
  idleMs: 4_000,
  maxIdleMs: 60_000,
  maxAgeMs: 300_000,
} satisfies ExchangeOptions;

/** How often time and size of all exchanges in flight are checked: one timer for all. */
const TICK_MS = 50;

type Settings = Required<Omit<ExchangeOptions, 'connectTo'>> & Pick<ExchangeOptions, 'connectTo'>;

export class Exchange {
  readonly #guard: EgressGuard;
  readonly #settings: Settings;
  readonly #inFlight = new Set<Flight>();
  /** By origin; the last used is the next used. */
  readonly #idle = new Map<string, Connection[]>();
  /** All idle ones, the least recently used first. */
  readonly #idleByAge = new Set<Connection>();
  #ticker: NodeJS.Timeout | null = null;
  #closing: PromiseWithResolvers<void> | null = null;

  constructor(guard: EgressGuard, options: ExchangeOptions = {}) {
    this.#guard = guard;
    this.#settings = { ...EXCHANGE_DEFAULTS, ...options };
  }

  /**
   * Headers are sent as given, in their order, after `host` and `connection` and before `content-length`; redirects are
   * answers like any other.
   * @throws the reason of `signal`, and on headers that cannot be sent: never for a receiver's behaviour
   */
  post(
    url: string,
    headers: Readonly<Record<string, string>>,
    body: Buffer,
    signal?: AbortSignal,
  ): Promise<ExchangeResult> {
    if (this.#closing !== null) return Promise.reject(new Error('the exchange is closed'));
    if (signal?.aborted) return Promise.reject(signal.reason);
    const flight = new Flight(this.#settings, signal, (one, keep) => this.#landed(one, keep));
    try {
      const target = this.#guard.checkUrl(url);
      this.#inFlight.add(flight);
      this.#ticker ??= setInterval(() => this.#tick(), TICK_MS);
      const connection = this.#take(target);
      flight.connection = connection;
      connection.send({ method: 'POST', path: target.pathname + target.search, headers, body }, flight);
    } catch (error) {
      if (error instanceof NotAllowed) flight.fail('url_not_allowed');
      else flight.reject(error);
    }
    return flight.result;
  }

  /** Open connections without a request. */
  get idle(): number {
    return this.#idleByAge.size;
  }

  /** Accepts no more requests, waits for those in flight (at most `totalMs`), and closes the idle connections. */
  async close(): Promise<void> {
    this.#closing ??= Promise.withResolvers<void>();
    for (const connection of [...this.#idleByAge]) this.#drop(connection);
    if (this.#inFlight.size === 0) this.#closing.resolve();
    await this.#closing.promise;
    if (this.#ticker !== null) clearInterval(this.#ticker);
    this.#ticker = null;
  }

  #take(url: URL): Connection {
    const stack = this.#idle.get(url.origin);
    for (let connection = stack?.at(-1); connection !== undefined; connection = stack?.at(-1)) {
      this.#forget(connection);
      if (connection.reusable) return connection;
      connection.destroy();
    }
    return new Connection(this.#guard, url, this.#settings, (gone) => {
      // With a request on it the client opens a new socket itself, or the request ends and drops the connection.
      if (this.#idleByAge.has(gone)) this.#drop(gone);
    });
  }

  #landed(flight: Flight, keep: boolean): void {
    this.#inFlight.delete(flight);
    const { connection } = flight;
    if (connection !== null) {
      flight.connection = null;
      if (keep && connection.reusable && this.#closing === null) this.#keep(connection);
      else connection.destroy();
    }
    if (this.#inFlight.size === 0) this.#closing?.resolve();
  }

  #keep(connection: Connection): void {
    const { maxIdlePerOrigin, maxIdle } = this.#settings;
    const stack = this.#idle.get(connection.origin);
    if ((stack?.length ?? 0) >= maxIdlePerOrigin) {
      connection.destroy();
      return;
    }
    if (stack === undefined) this.#idle.set(connection.origin, [connection]);
    else stack.push(connection);
    this.#idleByAge.add(connection);
    for (const oldest of this.#idleByAge) {
      if (this.#idleByAge.size <= maxIdle) break;
      this.#drop(oldest);
    }
  }

  #drop(connection: Connection): void {
    this.#forget(connection);
    connection.destroy();
  }

  #forget(connection: Connection): void {
    this.#idleByAge.delete(connection);
    const stack = this.#idle.get(connection.origin);
    const at = stack?.lastIndexOf(connection) ?? -1;
    if (at >= 0) stack?.splice(at, 1);
    if (stack?.length === 0) this.#idle.delete(connection.origin);
  }

  #tick(): void {
    const now = performance.now();
    for (const flight of this.#inFlight) flight.check(now);
    if (this.#inFlight.size > 0 || this.#ticker === null) return;
    clearInterval(this.#ticker);
    this.#ticker = null;
  }
}
