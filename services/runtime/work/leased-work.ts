import type { Pool } from 'pg';
import type { Clock } from '#runtime/postgres/database-clock.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { type Lease, Leases } from './leases.ts';
import { Liveness } from './liveness.ts';
import { Rest, type WakeSignal } from './wake-signal.ts';

export interface LeasedWorkOptions<Job> {
  readonly pool: Pool;
  readonly leaseKind: string;
  readonly leaseTtlMs: number;
  /** While the clock has a fault, the worker takes no lease. */
  readonly clock?: Pick<Clock, 'fault'> | undefined;
  readonly logger: Logger;
  /** Milliseconds between two searches when no signal wakes the loop. */
  readonly pollMs: number;
  /** Longest wait of an idle loop, in poll intervals. Default 4. */
  readonly maxPolls?: number;
  /** Poll intervals without a search after which the worker is not ready. */
  readonly stalePolls: number;
  readonly wakeSignal: WakeSignal;
  /** Ends the loop and aborts running jobs. */
  readonly signal: AbortSignal;
  readonly idOf: (job: Job) => string;
  /**
   * Works on one job and records its failure. `signal` aborts when the lease is lost or the loop ends.
   * @returns milliseconds in which no worker may take the job, or null
   */
  readonly work: (job: Job, lease: Lease, signal: AbortSignal) => Promise<number | null>;
}

/**
 * The loop of a worker: it searches for due jobs, leases the jobs that it can begin, and holds each lease during the
 * work. If the process dies, its leases lapse, and another process finds the same rows and continues from the streams.
 */
export class LeasedWork<Job> {
  readonly liveness: Liveness;
  readonly #options: LeasedWorkOptions<Job>;
  readonly #leases: Leases;
  readonly #running = new Map<Promise<void>, Job>();

  constructor(options: LeasedWorkOptions<Job>) {
    const { pool, leaseKind, leaseTtlMs, clock, logger, pollMs, stalePolls } = options;
    this.#options = options;
    this.liveness = new Liveness(stalePolls * pollMs);
    this.#leases = new Leases({
      pool,
      kind: leaseKind,
      ttlMs: leaseTtlMs,
      ...(clock === undefined ? {} : { clock }),
      onError: (error) => logger.warn({ err: error }, 'could not renew or release leases; retrying'),
    });
  }

  get running(): readonly Job[] {
    return [...this.#running.values()];
  }

  get size(): number {
    return this.#running.size;
  }

  /** Begins the jobs that no other process holds, and returns them. */
  async begin(jobs: readonly Job[]): Promise<readonly Job[]> {
    const byId = new Map(jobs.map((job) => [this.#options.idOf(job), job]));
    const begun: Job[] = [];
    for (const lease of await this.#leases.acquire([...byId.keys()])) {
      const job = byId.get(lease.id);
      if (job === undefined) continue;
      const done = this.#hold(job, lease).finally(() => {
        this.#running.delete(done);
        this.#options.wakeSignal.wake();
      });
      this.#running.set(done, job);
      begun.push(job);
    }
    return begun;
  }

  /** Resolves when no job runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.keys());
  }

  /**
   * Runs until the signal aborts and every job has ended.
   * @param search searches and begins due jobs; true: it found work, so there may be more
   * @param sought names the work in the log line of a failed search
   */
  async run(search: () => Promise<boolean>, sought: string): Promise<void> {
    const { pollMs, maxPolls, wakeSignal, signal } = this.#options;
    const isOver = (): boolean => signal.aborted;
    const rest = new Rest(pollMs, maxPolls);
    const wake = (): void => wakeSignal.wake();
    signal.addEventListener('abort', wake, { once: true });
    try {
      while (!isOver()) {
        const more = await this.#search(search, sought);
        const waitMs = rest.after(more || this.#running.size > 0);
        if (!more) await wakeSignal.wait(waitMs, isOver);
      }
      await this.idle();
    } finally {
      signal.removeEventListener('abort', wake);
      await this.#leases.close();
    }
  }

  async #search(search: () => Promise<boolean>, sought: string): Promise<boolean> {
    try {
      // A released lease that is not yet written would hide its job from the search.
      await this.#leases.flush();
      return await search();
    } catch (error) {
      this.#options.logger.warn({ err: error }, `looking for ${sought} failed`);
      return false;
    }
  }

  /** Never rejects. */
  async #hold(job: Job, lease: Lease): Promise<void> {
    const { work, signal, idOf, leaseKind, logger } = this.#options;
    let restMs: number | null = null;
    try {
      restMs = await work(job, lease, AbortSignal.any([lease.signal, signal]));
    } catch (error) {
      logger.error({ err: error, leaseKind, id: idOf(job) }, 'a worker did not settle the failure of a job');
    }
    lease.release(restMs === null ? {} : { notBeforeMs: restMs });
  }
}
