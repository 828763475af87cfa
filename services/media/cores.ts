import { availableParallelism, hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import { type Lease, Leases } from '#runtime/work/leases.ts';

/**
 * The cores of this machine, shared among all media workers on it: one lease for each core. A worker that renders a
 * video takes free cores and uses one thread for each, so all workers together use no more threads than there are
 * cores.
 */

export interface CoresOptions {
  readonly pool: Pool;
  readonly ttlMs: number;
  readonly onError: (error: unknown) => void;
  /** Default: as many as this machine has. */
  readonly count?: number;
  /** Name of the machine. Default: its host name. */
  readonly host?: string;
}

export interface Taken {
  readonly threads: number;
  /** Aborts when one of the cores is lost. */
  readonly signal: AbortSignal;
  release(): void;
}

/** Milliseconds between two tries to get a free core. */
const retryMs = 100;

export class Cores {
  readonly #leases: Leases;
  readonly #ids: readonly string[];

  constructor({ pool, ttlMs, onError, count = availableParallelism(), host = hostname() }: CoresOptions) {
    this.#leases = new Leases({ pool, kind: 'cores', ttlMs, onError });
    this.#ids = Array.from({ length: count }, (_, n) => `${host}:${n}`);
  }

  /** Waits for at least one core and takes up to `max` free ones. Rejects when the signal aborts. */
  async take(max: number, signal: AbortSignal): Promise<Taken> {
    for (;;) {
      signal.throwIfAborted();
      const free = await this.#leases.acquire(this.#ids);
      for (const one of free.slice(max)) one.release();
      const mine = free.slice(0, max);
      if (mine.length > 0) return takenOf(mine);
      await delay(retryMs, undefined, { signal });
    }
  }

  close(): Promise<void> {
    return this.#leases.close();
  }
}

const takenOf = (leases: readonly Lease[]): Taken => ({
  threads: leases.length,
  signal: AbortSignal.any(leases.map((one) => one.signal)),
  release: () => {
    for (const one of leases) one.release();
  },
});
