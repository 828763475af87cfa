import { isIP } from 'node:net';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import type { DialOptions } from '#runtime/egress/dial.ts';
import { type EgressGuard, hostOf, NotAllowed } from '#runtime/egress/guard.ts';
import { Transfer } from '#runtime/egress/transfer.ts';
import { Quota, type Rate } from './limits.ts';

/**
 * Fetches what apps publish about themselves: metadata documents and keys, at addresses that strangers choose. All calls
 * go through the egress guard, which judges the addresses and connects to no other.
 */

const maxBytes = 32_768;
const totalMs = 2_500;
const connectMs = 2_000;
/** Milliseconds for which an address that failed is not called again. */
const failedMs = 60_000;
const maxFailed = 1_000;
const maxAtOnce = 20;
/** The longest client id; the same as in the event. */
const maxUrl = 500;

export interface DocumentOptions {
  /** Fetches for one caller's address. Default: 30 a minute. */
  readonly rate?: Rate;
  /** For tests: where judged addresses are really dialled. */
  readonly connectTo?: DialOptions['connectTo'];
}

export class Documents {
  readonly #guard: EgressGuard;
  readonly #connectTo: DialOptions['connectTo'];
  readonly #quota: Quota;
  /** Address → monotonic instant until which it is left alone; the oldest is forgotten first. */
  readonly #failed = new BoundedMap<string, number>(maxFailed);
  #atOnce = 0;

  constructor(guard: EgressGuard, { rate = { perMinute: 30, burst: 30 }, connectTo }: DocumentOptions = {}) {
    this.#guard = guard;
    this.#connectTo = connectTo;
    this.#quota = new Quota(rate);
  }

  /** Whether a document may be fetched for this caller now. */
  mayFetch(url: string, caller: string): boolean {
    if (url.length > maxUrl || this.#isBusyOrFailed(url)) return false;
    try {
      const checked = this.#guard.checkUrl(url);
      const isNamed = isIP(hostOf(checked)) === 0 || this.#guard.isPrivateTarget(checked);
      const isDocument = checked.pathname !== '/' && checked.search === '';
      return checked.protocol === 'https:' && isNamed && isDocument && this.#quota.take(caller) === 0;
    } catch (error) {
      if (error instanceof NotAllowed) return false;
      throw error;
    }
  }

  #isBusyOrFailed(url: string): boolean {
    return this.#atOnce >= maxAtOnce || (this.#failed.get(url) ?? Number.NEGATIVE_INFINITY) > performance.now();
  }

  /**
   * As `fetch`, without redirects. Keys of apps come here without being asked for by `mayFetch`.
   * @throws where the guard refuses, the server does not answer in time, or has failed just now
   */
  async fetch(address: string): Promise<Response> {
    if (this.#isBusyOrFailed(address)) throw new Error('the address is left alone for now');
    this.#atOnce += 1;
    try {
      const response = await this.#get(address);
      if (response.status !== 200) this.#leaveAlone(address);
      return response;
    } catch (error) {
      this.#leaveAlone(address);
      throw error;
    } finally {
      this.#atOnce -= 1;
    }
  }

  async #get(address: string): Promise<Response> {
    const url = this.#guard.checkUrl(address);
    const transfer = new Transfer(
      this.#guard,
      url,
      { accept: 'application/json' },
      { connectMs, maxHeaderBytes: 16_384, ...(this.#connectTo === undefined ? {} : { connectTo: this.#connectTo }) },
    );
    const timer = setTimeout(() => transfer.end(new Error('the document did not come in time')), totalMs);
    try {
      const { status, headers } = await transfer.head;
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of transfer.body as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > maxBytes) throw new Error('the document is too large');
        chunks.push(chunk);
      }
      const kept = ['content-type', 'cache-control', 'expires'].flatMap((name) => {
        const value = headers[name];
        return value === undefined ? [] : [[name, value] as [string, string]];
      });
      // A status without a body is none of a document's.
      return new Response(status === 200 ? Buffer.concat(chunks) : null, {
        status: status === 200 ? 200 : 502,
        headers: kept,
      });
    } finally {
      clearTimeout(timer);
      transfer.end(new Error('done'));
    }
  }

  #leaveAlone(address: string): void {
    this.#failed.set(address, performance.now() + failedMs);
  }
}
