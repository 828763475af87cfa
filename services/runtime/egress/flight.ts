/** One exchange in flight: the answer so far, and the one moment at which it ends. */
import { AssertionError } from 'node:assert';
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Connection } from './connection.ts';
import { DialError } from './dial.ts';

/**
 * `connection_failed`: no such name, refused, unreachable, or closed before a status: deliberately not distinguished.
 * `bad_response`: not HTTP, endless headers, a malformed answer.
 */
export type ExchangeError = 'url_not_allowed' | 'connection_failed' | 'tls_failed' | 'timeout' | 'bad_response';

export interface ExchangeResult {
  /** After the status line and headers the status counts, even if the body fails; `error` is then null. */
  readonly status: number | null;
  readonly error: ExchangeError | null;
  /** The received headers among `keepHeaders`, by lower-case name; the first where one came twice. */
  readonly headers: Readonly<Record<string, string>>;
  /** The beginning of the body, at most `maxBodyBytes`, undecoded. */
  readonly bodyStart: Buffer;
  /** Whole milliseconds. Rounded up to half seconds where the exact time would reveal how near a host or port is. */
  readonly durationMs: number;
}

export interface FlightLimits {
  readonly totalMs: number;
  readonly maxHeaderBytes: number;
  readonly maxBodyBytes: number;
  readonly keepHeaders: readonly string[];
}

/** Bytes beyond headers and body that chunk framing may take before the answer is cut. */
const FRAMING_BYTES = 65_536;
const BLUNT_MS = 500;

const NOTHING = Buffer.alloc(0);

export class Flight implements Dispatcher.DispatchHandler {
  readonly result: Promise<ExchangeResult>;
  connection: Connection | null = null;
  readonly #limits: FlightLimits;
  readonly #signal: AbortSignal | undefined;
  readonly #land: (flight: Flight, keep: boolean) => void;
  readonly #startedAt = performance.now();
  #resolve: (result: ExchangeResult) => void = () => {};
  #reject: (reason: unknown) => void = () => {};
  #open = true;
  #status: number | null = null;
  #headers: Readonly<Record<string, string>> = {};
  #body: Buffer = NOTHING;

  constructor(limits: FlightLimits, signal: AbortSignal | undefined, land: (flight: Flight, keep: boolean) => void) {
    this.#limits = limits;
    this.#signal = signal;
    this.#land = land;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  // Its presence selects one of undici's two forms of handler.
  onRequestStart(): void {}

  onResponseStart(_controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    // 1xx come before the answer, and as often as the receiver likes.
    if (!this.#open || status < 200) return;
    this.#status = status;
    this.#headers = picked(headers, this.#limits.keepHeaders);
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    if (!this.#open) return;
    const room = this.#limits.maxBodyBytes - this.#body.length;
    // A copy: the chunk is a window into a buffer many times its size. NOTE: with its own memory. A slice of Node's
    // pool would keep all 64 KiB of it, and share it with longer-lived values.
    const body = Buffer.allocUnsafeSlow(this.#body.length + Math.min(room, chunk.length));
    this.#body.copy(body);
    chunk.copy(body, this.#body.length, 0, room);
    this.#body = body;
    if (chunk.length > room) this.#end(null, false);
  }

  onResponseEnd(): void {
    this.#end(null, true);
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (error instanceof DialError) this.fail(error.failure);
    else if (isOurMistake(error)) this.reject(error);
    else this.fail(isNotHttp(error) ? 'bad_response' : isTls(error) ? 'tls_failed' : 'connection_failed');
  }

  /** Checks for ends that cause no event: time is up, the caller has left, bytes that are not body arrive. */
  check(now: number): void {
    const { totalMs, maxHeaderBytes, maxBodyBytes } = this.#limits;
    if (this.#signal?.aborted) this.reject(this.#signal.reason);
    else if (now - this.#startedAt >= totalMs) this.fail('timeout');
    else if ((this.connection?.received ?? 0) > maxHeaderBytes + 2 * maxBodyBytes + FRAMING_BYTES)
      this.fail('bad_response');
  }

  fail(error: ExchangeError): void {
    this.#end(error, false);
  }

  reject(reason: unknown): void {
    if (!this.#open) return;
    this.#open = false;
    this.#reject(reason);
    this.#land(this, false);
  }

  #end(error: ExchangeError | null, keep: boolean): void {
    if (!this.#open) return;
    this.#open = false;
    const [status, headers, bodyStart] = [this.#status, this.#headers, this.#body];
    const outcome = status === null ? (error ?? 'bad_response') : null;
    const took = performance.now() - this.#startedAt;
    const blunt = outcome === 'url_not_allowed' || outcome === 'connection_failed';
    const durationMs = blunt ? Math.ceil(took / BLUNT_MS) * BLUNT_MS : Math.round(took);
    this.#resolve({ status, error: outcome, headers, bodyStart, durationMs });
    this.#land(this, keep);
  }
}

const picked = (headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> => {
  const found: Record<string, string> = {};
  for (const name of names) {
    const value = headers[name];
    const first = Array.isArray(value) ? value[0] : value;
    if (first !== undefined) found[name] = first;
  }
  return found;
};

/** A request that undici refused: headers of ours that HTTP cannot carry. */
const isOurMistake = (error: Error): boolean =>
  ['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED'].includes(codeOf(error));

/** The response was not an answer to a POST in HTTP/1.1; an unrequested upgrade counts too. */
const isNotHttp = (error: Error): boolean =>
  error.name === 'HTTPParserError' ||
  ['UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'].includes(codeOf(error)) ||
  error instanceof AssertionError ||
  (codeOf(error) === 'UND_ERR_SOCKET' && /^bad (upgrade|response)$/.test(error.message));

/** After the handshake: in TLS 1.3 a receiver refuses a client without a certificate only then. */
const isTls = (error: Error): boolean => /^ERR_(SSL|TLS)_/.test(codeOf(error));

/** By its code, not its class: undici is loaded with the first connection. */
const codeOf = (error: Error): string => ('code' in error && typeof error.code === 'string' ? error.code : '');
