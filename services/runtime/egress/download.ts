/**
 * Downloads the file at a caller's address: through the guard at every hop, within a size and a time, and resumed after
 * a break if the server allows it. The caller learns of a server's behaviour only as a code.
 */

import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { backOff } from '#contracts/base/back-off.ts';
import { DialError, type DialOptions } from './dial.ts';
import { type EgressGuard, NotAllowed } from './guard.ts';
import { Pace, type PaceLimits } from './pace.ts';
import { type Head, Transfer } from './transfer.ts';

export type DownloadCode =
  | 'import_unreachable'
  | 'import_too_large'
  | 'import_not_media'
  | 'import_timeout'
  | 'import_refused'
  | 'import_url_not_allowed'
  | 'import_too_many_redirects';

export class DownloadError extends Error {
  readonly code: DownloadCode;
  /** A later try may succeed. */
  readonly retryable: boolean;
  /** The message names the code and no address: it is logged. */
  constructor(code: DownloadCode, retryable: boolean, options?: { readonly cause?: unknown }) {
    super(code, options);
    this.name = 'DownloadError';
    this.code = code;
    this.retryable = retryable;
  }
}

export interface DownloadOptions extends Partial<DialOptions>, Partial<PaceLimits> {
  /** Path of the file; an existing one is overwritten. After a failure there is none. */
  readonly to: string;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** Milliseconds for everything, redirects and resumptions included; default 30 minutes. */
  readonly totalMs?: number;
  /** Milliseconds without a byte of an answer; default 30,000. */
  readonly idleMs?: number;
  /** The clock of these limits, milliseconds. Default `performance.now`. */
  readonly now?: () => number;
  /** Default 5. */
  readonly maxRedirects?: number;
  /** How often a connection that broke during the body is reopened; default 5. */
  readonly maxResumes?: number;
  /** Milliseconds before the first resumption, doubled each time; default 500. */
  readonly resumeDelayMs?: number;
}

export interface Downloaded {
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
  /** From the server; null: it sent none. */
  readonly contentType: string | null;
  /** From the server, else from the address; null: neither has one. */
  readonly fileName: string | null;
  /** After redirects. It may hold a signature: not for logs. */
  readonly finalUrl: string;
}

export const DOWNLOAD_DEFAULTS = {
  connectMs: 10_000,
  totalMs: 1_800_000,
  idleMs: 30_000,
  headStartMs: 120_000,
  minRate: 262_144,
  windowMs: 30_000,
  minWindowRate: 65_536,
  maxRedirects: 5,
  maxResumes: 5,
  resumeDelayMs: 500,
} satisfies Partial<DownloadOptions>;

/** How often the limits are checked, and so their precision. */
const TICK_MS = 50;
const MAX_HEADER_BYTES = 16_384;

/** @throws DownloadError; the signal's reason; errors of the local file system */
export const download = async (guard: EgressGuard, url: string, options: DownloadOptions): Promise<Downloaded> => {
  options.signal.throwIfAborted();
  const handle = await open(options.to, 'w', 0o600);
  try {
    const one = new Download(guard, url, handle, { ...DOWNLOAD_DEFAULTS, ...options }, options.now);
    const done = await one.run();
    await handle.close();
    return done;
  } catch (error) {
    await handle.close();
    await rm(options.to, { force: true });
    throw error;
  }
};

type Settings = Required<Omit<DownloadOptions, 'connectTo' | 'now'>> & Pick<DownloadOptions, 'connectTo'>;

/** The connection broke during the body. */
class Broken extends Error {}

class Download {
  readonly #guard: EgressGuard;
  readonly #url: string;
  readonly #file: FileHandle;
  readonly #settings: Settings;
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #pace: Pace;
  #transfer: Transfer | null = null;
  /** Since when the server has sent nothing although the reader was ready; null while this process is busy itself. */
  #waitingSince: number | null = null;
  /** Milliseconds of earlier waits. */
  #waitedMs = 0;
  /** Why this side ended the transfer. */
  #endReason: unknown = null;

  /** All body bytes ever received; a restart does not reset it. */
  #received = 0;
  #bytes = 0;
  #hash: Hash = createHash('sha256');
  /** Length of the whole file, as far as a server stated it. */
  #total: number | null = null;
  /**
   * Identifies the exact bytes of which we have a part (strong ETag, else Last-Modified); null: after a break the
   * download starts again from the first byte.
   */
  #validator: string | null = null;

  constructor(guard: EgressGuard, url: string, file: FileHandle, settings: Settings, now = () => performance.now()) {
    this.#guard = guard;
    this.#url = url;
    this.#file = file;
    this.#settings = settings;
    this.#now = now;
    this.#startedAt = now();
    this.#pace = new Pace(settings);
  }

  async run(): Promise<Downloaded> {
    const { maxResumes, resumeDelayMs, signal } = this.#settings;
    const ticker = setInterval(() => this.#tick(), TICK_MS);
    const abort = (): void => this.#end(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      for (let breaks = 0; ; breaks += 1) {
        try {
          return await this.#attempt();
        } catch (error) {
          if (!(error instanceof Broken)) throw error;
          // An unread part would hold its connection.
          this.#transfer?.end(new Error('of no use'));
          if (breaks === maxResumes) throw new DownloadError('import_unreachable', true, { cause: error.cause });
        }
        await wait(backOff(breaks, { firstMs: resumeDelayMs, maxMs: 10_000 }), null, { signal }).catch(() => undefined);
        if (this.#endReason !== null) throw this.#endReason;
      }
    } finally {
      clearInterval(ticker);
      signal.removeEventListener('abort', abort);
      this.#transfer?.end(new Error('done'));
    }
  }

  /**
   * One answer that is not a redirect, appended to the file, or written from its start where the server sends the whole
   * file.
   */
  async #attempt(): Promise<Downloaded> {
    const { head, url, transfer } = await this.#followed();
    const from = this.#accepted(head);
    if (from === null) {
      // Our part is not of the present file: without a range the server sends all of it.
      await this.#restart();
      throw new Broken();
    }
    if (from === 0) {
      await this.#restart();
      this.#validator = validatorOf(head.headers);
    }
    this.#pace.begin(this.#received, this.#waited());
    this.#total = totalOf(head) ?? this.#total;
    if ((this.#total ?? 0) > this.#settings.maxBytes) throw new DownloadError('import_too_large', false);
    await this.#write(transfer);
    return {
      bytes: this.#bytes,
      sha256: this.#hash.digest('hex'),
      contentType: head.headers['content-type'] ?? null,
      fileName: fileNameOf(head.headers['content-disposition'], url),
      finalUrl: url.href,
    };
  }

  async #followed(): Promise<{ readonly head: Head; readonly url: URL; readonly transfer: Transfer }> {
    let url = this.#checked(this.#url);
    for (let redirects = 0; ; redirects += 1) {
      const { transfer, head } = await this.#get(url);
      const { location } = head.headers;
      if (![301, 302, 303, 307, 308].includes(head.status) || location === undefined) return { head, url, transfer };
      transfer.end(new Error('redirected'));
      if (redirects === this.#settings.maxRedirects) throw new DownloadError('import_too_many_redirects', false);
      if (!URL.canParse(location, url.href)) throw new DownloadError('import_refused', false);
      url = this.#checked(new URL(location, url.href).href);
    }
  }

  #checked(url: string): URL {
    try {
      return this.#guard.checkUrl(url);
    } catch (error) {
      if (error instanceof NotAllowed) throw new DownloadError('import_url_not_allowed', false);
      throw error;
    }
  }

  async #get(url: URL): Promise<{ readonly transfer: Transfer; readonly head: Head }> {
    if (this.#endReason !== null) throw this.#endReason;
    const part = this.#bytes > 0 && this.#validator !== null;
    const headers = {
      'user-agent': 'postline-import/1',
      accept: '*/*',
      // Bytes are counted, hashed and resumed as they are stored: compression could give different bytes each time.
      'accept-encoding': 'identity',
      ...(part ? { range: `bytes=${this.#bytes}-`, 'if-range': this.#validator ?? '' } : {}),
    };
    const { connectMs, connectTo } = this.#settings;
    const limits = { connectMs, maxHeaderBytes: MAX_HEADER_BYTES, ...(connectTo === undefined ? {} : { connectTo }) };
    const transfer = new Transfer(this.#guard, url, headers, limits);
    this.#transfer = transfer;
    this.#waitingSince = this.#now();
    try {
      return { transfer, head: await transfer.head };
    } catch (error) {
      throw this.#endReason ?? this.#failed(error);
    } finally {
      this.#waitNoMore();
    }
  }

  /** No answer at all: one more break when we have a part of the file, otherwise the outcome. */
  #failed(error: unknown): Error {
    if (error instanceof DialError && error.failure === 'url_not_allowed') {
      return new DownloadError('import_url_not_allowed', false);
    }
    if (this.#bytes > 0) return new Broken('no answer', { cause: error });
    if (error instanceof DialError) {
      const code = error.failure === 'timeout' ? 'import_timeout' : 'import_unreachable';
      return new DownloadError(code, error.failure !== 'tls_failed');
    }
    const noHttp =
      error instanceof Error && (error.name === 'HTTPParserError' || codeOf(error) === 'UND_ERR_HEADERS_OVERFLOW');
    return new DownloadError(noHttp ? 'import_refused' : 'import_unreachable', !noHttp, { cause: error });
  }

  /** Where in the file the answer begins; null when it is a part of another file. @throws DownloadError */
  #accepted({ status, headers }: Head): number | null {
    const isRangeRequested = this.#bytes > 0 && this.#validator !== null;
    if (isRangeRequested && status === 416) return null;
    if (status !== 200 && !(isRangeRequested && status === 206)) {
      const later = status >= 500 || [408, 425, 429].includes(status);
      throw new DownloadError('import_refused', later);
    }
    const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
    if (encoding !== 'identity' && encoding !== '') throw new DownloadError('import_not_media', false);
    if (status === 200) return 0;
    const [, start, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers['content-range'] ?? '') ?? [];
    const goesOn = start !== undefined && Number(start) === this.#bytes;
    const sameLength = this.#total === null || total === '*' || Number(total) === this.#total;
    return goesOn && sameLength && !this.#namesAnother(headers) ? this.#bytes : null;
  }

  /** A server that ignores If-Range sends a part of its present file. */
  #namesAnother(headers: Head['headers']): boolean {
    const said = headers[this.#validator?.startsWith('"') ? 'etag' : 'last-modified'];
    return said !== undefined && said !== this.#validator;
  }

  async #write(transfer: Transfer): Promise<void> {
    const chunks = transfer.body[Symbol.asyncIterator]();
    for (;;) {
      const chunk = await this.#next(chunks);
      if (chunk === null) break;
      this.#received += chunk.length;
      if (this.#bytes + chunk.length > this.#settings.maxBytes) throw new DownloadError('import_too_large', false);
      this.#hash.update(chunk);
      for (let at = 0; at < chunk.length; ) {
        at += (await this.#file.write(chunk, at, chunk.length - at, this.#bytes + at)).bytesWritten;
      }
      this.#bytes += chunk.length;
    }
    if (this.#total !== null && this.#bytes !== this.#total)
      throw new Broken('the body is not as long as it was said to be');
  }

  async #next(chunks: AsyncIterator<Buffer>): Promise<Buffer | null> {
    this.#waitingSince = this.#now();
    try {
      const { value, done } = await chunks.next();
      return done === true ? null : value;
    } catch (error) {
      throw this.#endReason ?? new Broken('the connection broke', { cause: error });
    } finally {
      this.#waitNoMore();
    }
  }

  async #restart(): Promise<void> {
    this.#bytes = 0;
    this.#hash = createHash('sha256');
    this.#total = null;
    this.#validator = null;
    await this.#file.truncate(0);
  }

  #tick(): void {
    const { totalMs, idleMs } = this.#settings;
    const now = this.#now();
    const silent = this.#waitingSince !== null && now - this.#waitingSince >= idleMs;
    const slow = this.#pace.isTooSlow(this.#received, this.#waited());
    // A server that is slow on purpose would take a slot at each try, so no retry. One that fell silent may recover.
    if (now - this.#startedAt >= totalMs) this.#end(new DownloadError('import_timeout', false));
    else if (silent) this.#end(new DownloadError('import_timeout', true));
    else if (slow) this.#end(new DownloadError('import_timeout', false));
  }

  /** Milliseconds of waiting for the server: our disk, and our rest after a break, do not count against it. */
  #waited(): number {
    return this.#waitedMs + (this.#waitingSince === null ? 0 : this.#now() - this.#waitingSince);
  }

  #waitNoMore(): void {
    this.#waitedMs = this.#waited();
    this.#waitingSince = null;
  }

  #end(reason: unknown): void {
    this.#endReason ??= reason;
    this.#transfer?.end(new Error('ended'));
  }
}

const codeOf = (error: Error): unknown => ('code' in error ? error.code : undefined);

/** Length of the whole file: of a 206 from its Content-Range. */
const totalOf = ({ status, headers }: Head): number | null => {
  const text = status === 206 ? /\/(\d+)$/.exec(headers['content-range'] ?? '')?.[1] : headers['content-length'];
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
};

/** RFC 9110 13.1.5: a weak ETag does not prove that the bytes are the same. */
const validatorOf = (headers: Readonly<Record<string, string>>): string | null => {
  const { etag, 'last-modified': modified } = headers;
  if (etag !== undefined && /^"[\x21\x23-\x7e]*"$/.test(etag)) return etag;
  return modified !== undefined && !Number.isNaN(Date.parse(modified)) ? modified : null;
};

const fileNameOf = (disposition: string | undefined, url: URL): string | null => {
  const extended = /filename\*\s*=\s*utf-8'[^']*'([^;\s]+)/i.exec(disposition ?? '')?.[1];
  const plain = /filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/i.exec(disposition ?? '');
  const candidates = [
    decoded(extended),
    plain?.[1]?.replace(/\\(.)/g, '$1') ?? plain?.[2],
    decoded(url.pathname.split('/').at(-1)),
  ];
  for (const candidate of candidates) {
    const name = (candidate ?? '')
      .toWellFormed()
      .replace(/^.*[/\\]/s, '')
      .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
      .trim();
    if (!/^\.*$/.test(name)) return [...name].slice(0, 200).join('');
  }
  return null;
};

const decoded = (text: string | undefined): string | undefined => {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
};
