/**
 * Calls of networks, each on a connection of its own: a kept connection may close under a request, and then nobody knows
 * whether the network has it. The caller bounds how many run at once.
 */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { FileSlice, NetworkCall, NetworkHttp, NetworkResult } from '#contracts/ports/network-http.ts';
import { Connection } from './connection.ts';
import { DialError } from './dial.ts';
import { type EgressGuard, NotAllowed } from './guard.ts';
import { type SeenCall, seenCall } from './seen-call.ts';

export interface NetworkHttpOptions {
  /** Milliseconds for a connection with its handshake. Default 10,000. */
  readonly connectMs?: number;
  /** Called after each call, with nothing secret. */
  readonly report?: (seen: SeenCall) => void;
}

const maxAnswerBytes = 1 << 20;
const maxHeaderBytes = 32_768;
/** Questions for many posts at once name each in the address. */
const maxUrl = 16_384;
/** A multiple of three: base64 of the pieces is that of the whole. */
const pieceBytes = 192 << 10;
/** The socket takes one request; one that has its answer is closed here, and not by the client's own clock. */
const alone = { idleMs: 10_000, maxIdleMs: 10_000, maxAgeMs: 0 } as const;

const sizeOf = (piece: Buffer | FileSlice): number => {
  if (Buffer.isBuffer(piece)) return piece.length;
  const bytes = piece.end - piece.start;
  return piece.as === 'base64' ? Math.ceil(bytes / 3) * 4 : bytes;
};

/** Of the bytes that went out. A body that is given up may still yield a piece; it counts no more. */
class Sum {
  readonly #hash = createHash('sha256');
  #hex: string | null = null;

  add(bytes: Buffer): void {
    if (this.#hex === null) this.#hash.update(bytes);
  }

  end(): string {
    this.#hex ??= this.#hash.digest('hex');
    return this.#hex;
  }
}

/**
 * Reads a slice into two buffers by turns, so that a large file leaves no garbage of its own size. A buffer is filled
 * again when the one after it has left: the connection asks for the next piece once its queue is empty, which a piece of
 * this size always fills.
 */
async function* readOf({ path, start, end }: FileSlice): AsyncGenerator<Buffer> {
  const file = await open(path);
  try {
    const size = Math.min(pieceBytes, end - start);
    const buffers = [Buffer.allocUnsafeSlow(size), Buffer.allocUnsafeSlow(size)] as const;
    for (let at = start, count = 0; at < end; count += 1) {
      const wanted = Math.min(size, end - at);
      const buffer = (count % 2 === 0 ? buffers[0] : buffers[1]).subarray(0, wanted);
      for (let filled = 0; filled < wanted; ) {
        const { bytesRead } = await file.read(buffer, filled, wanted - filled, at + filled);
        if (bytesRead === 0) throw new Error('the file is shorter than its slice');
        filled += bytesRead;
      }
      at += wanted;
      yield buffer;
    }
  } finally {
    await file.close();
  }
}

/** A piece of the text at a time. */
async function* base64Of(slice: FileSlice): AsyncGenerator<Buffer> {
  for await (const bytes of readOf(slice)) yield Buffer.from(bytes.toString('base64'), 'latin1');
}

const piecesOf = (piece: Buffer | FileSlice): readonly Buffer[] | AsyncGenerator<Buffer> => {
  if (Buffer.isBuffer(piece)) return [piece];
  return piece.as === 'base64' ? base64Of(piece) : readOf(piece);
};

async function* bytesOf({ body, onSent }: NetworkCall, sum: Sum): AsyncGenerator<Buffer> {
  for (const piece of body) {
    for await (const chunk of piecesOf(piece)) {
      sum.add(chunk);
      yield chunk;
      onSent?.(chunk.length);
    }
  }
}

/** A body that needs no reading leaves with its headers. Null: it is read piece by piece, or its progress is reported. */
const wholeBody = ({ body: [only, ...others], onSent }: NetworkCall): Buffer | null =>
  Buffer.isBuffer(only) && others.length === 0 && onSent === undefined ? only : null;

class Answer implements Dispatcher.DispatchHandler {
  readonly result: Promise<NetworkResult>;
  #resolve: (result: NetworkResult) => void = () => {};
  #status = 0;
  readonly #headers: Record<string, string> = {};
  readonly #chunks: Buffer[] = [];
  #length = 0;

  constructor() {
    this.result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  end(result: NetworkResult): void {
    this.#resolve(result);
  }

  // Its presence selects one of undici's two forms of handler.
  onRequestStart(): void {}

  onResponseStart(_controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#status = status;
    for (const name in headers) {
      const value = headers[name];
      const one = Array.isArray(value) ? value[0] : value;
      if (one !== undefined) this.#headers[name] = one;
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length <= maxAnswerBytes) this.#chunks.push(chunk);
    else controller.abort(new Error('answer_too_long'));
  }

  onResponseEnd(): void {
    const { length } = this.#chunks;
    const body = length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    this.end({ kind: 'answered', status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (error instanceof DialError) this.end({ kind: 'unsent', reason: error.failure });
    else this.end({ kind: 'silent', reason: error.message === 'answer_too_long' ? error.message : 'connection_lost' });
  }
}

/** Calls under way that make a burst. */
const burst = 16;
/** Connections of a burst that wait for their end. */
const maxLeft = 512;
/** Milliseconds until they are closed, and between one such part of them and the next. */
const leftMs = 1_000;
const partMs = 20;
const part = 32;

/**
 * Connections that have their answer. Closing one takes a tenth of what a call takes, and nobody waits for it: in a burst
 * it is done behind the calls that are due.
 */
class Left {
  readonly #connections: Connection[] = [];
  #timer: NodeJS.Timeout | null = null;

  add(connection: Connection): void {
    if (this.#connections.length < maxLeft) this.#connections.push(connection);
    else connection.destroy();
    this.#timer ??= setTimeout(this.#close, leftMs);
  }

  readonly #close = (): void => {
    for (const connection of this.#connections.splice(0, part)) connection.destroy();
    this.#timer = this.#connections.length === 0 ? null : setTimeout(this.#close, partMs);
  };
}

export class GuardedNetworkHttp implements NetworkHttp {
  readonly #guard: EgressGuard;
  readonly #connectMs: number;
  readonly #report: NetworkHttpOptions['report'];
  readonly #left = new Left();
  #underWay = 0;

  constructor(guard: EgressGuard, { connectMs = 10_000, report }: NetworkHttpOptions = {}) {
    this.#guard = guard;
    this.#connectMs = connectMs;
    this.#report = report;
  }

  async send(call: NetworkCall, signal: AbortSignal): Promise<NetworkResult> {
    const begun = performance.now();
    const sum = new Sum();
    const whole = wholeBody(call);
    const result = await this.#send(call, whole ?? bytesOf(call, sum), signal);
    if (whole !== null && result.kind !== 'unsent') sum.add(whole);
    this.#report?.(seenCall(call, result, sum.end(), Math.round(performance.now() - begun)));
    return result;
  }

  async #send(call: NetworkCall, bytes: Buffer | AsyncIterable<Buffer>, signal: AbortSignal): Promise<NetworkResult> {
    if (signal.aborted) return { kind: 'unsent', reason: 'aborted' };
    let url: URL;
    try {
      url = this.#guard.checkUrl(call.url, maxUrl);
    } catch (error) {
      if (error instanceof NotAllowed) return { kind: 'unsent', reason: 'url_not_allowed' };
      throw error;
    }
    const answer = new Answer();
    const limits = { connectMs: this.#connectMs, maxHeaderBytes, ...alone };
    const connection = new Connection(this.#guard, url, limits, () => {});
    const stop = (): void => {
      // Before the connection stands, no byte of the request has left.
      answer.end({ kind: connection.isConnected ? 'silent' : 'unsent', reason: 'aborted' });
      connection.destroy();
    };
    signal.addEventListener('abort', stop, { once: true });
    let isAnswered = false;
    this.#underWay += 1;
    try {
      const { method, body, headers } = call;
      const length = body.reduce((sum, piece) => sum + sizeOf(piece), 0);
      const hasBody = body.length > 0;
      connection.send(
        {
          method,
          path: url.pathname + url.search,
          headers: { ...headers, ...(hasBody ? { 'content-length': String(length) } : {}) },
          ...(hasBody ? { body: bytes as Buffer } : {}),
        },
        answer,
      );
      const result = await answer.result;
      isAnswered = result.kind === 'answered' && !signal.aborted;
      return result;
    } finally {
      signal.removeEventListener('abort', stop);
      this.#underWay -= 1;
      if (isAnswered && this.#underWay >= burst) this.#left.add(connection);
      else connection.destroy();
    }
  }
}
