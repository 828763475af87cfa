import { report } from '#domain/report.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import { backOff } from '#runtime/work/back-off.ts';
import { type Lease, Leases } from '#runtime/work/leases.ts';
import { Liveness } from '#runtime/work/liveness.ts';
import { Rest, type WakeSignal } from '#runtime/work/wake-signal.ts';
import type { ReportDeps } from './deps.ts';
import { type Begun, type Job, Jobs } from './jobs.ts';
import { make, maxTries } from './make.ts';
import { type ReportMetrics, reportMetrics } from './metrics.ts';

/**
 * Finds runs that are to be made, leases them, and makes one at a time, each workspace in its turn: drawing keeps a core
 * busy. A lost lease ends the work on it; whoever takes it over makes the run anew.
 */

const leaseKind = 'report';
/** Longest wait after faults in a row, milliseconds. */
const maxBackOffMs = 600_000;

export class Worker {
  readonly #deps: ReportDeps;
  readonly #signal: AbortSignal;
  readonly #wakeSignal: WakeSignal;
  readonly #jobs: Jobs;
  readonly #leases: Leases;
  readonly #metrics: ReportMetrics | null;
  readonly #liveness: Liveness;

  constructor(deps: ReportDeps, wakeSignal: WakeSignal, signal: AbortSignal) {
    const { pool, config, clock, logger, readiness, registry, pollMs = 1_000 } = deps;
    this.#deps = deps;
    this.#wakeSignal = wakeSignal;
    this.#signal = signal;
    this.#jobs = new Jobs(pool);
    this.#liveness = new Liveness(60 * pollMs);
    this.#metrics = registry === undefined ? null : reportMetrics(registry, () => this.#jobs.length());
    this.#leases = new Leases({
      pool,
      kind: leaseKind,
      ttlMs: config.leaseTtlMs,
      ...(clock === undefined ? {} : { clock }),
      onError: (error) => logger.warn({ err: error }, 'leases could not be renewed or given back'),
    });
    readiness?.add('reports', async () => this.#liveness.check());
  }

  async run(): Promise<void> {
    const { pollMs = 1_000 } = this.#deps;
    const isOver = (): boolean => this.#signal.aborted;
    const rest = new Rest(pollMs);
    this.#signal.addEventListener('abort', () => this.#wakeSignal.wake(), { once: true });
    try {
      while (!isOver()) {
        const more = await this.#look();
        const waitMs = rest.after(more);
        if (!more) await this.#wakeSignal.wait(waitMs, isOver);
      }
    } finally {
      await this.#leases.close();
    }
  }

  /** True when it has worked on something: there may be more. */
  async #look(): Promise<boolean> {
    let worked = false;
    try {
      this.#liveness.looked();
      await this.#jobs.endLives();
      for (const job of await this.#jobs.due(leaseKind)) {
        if (this.#signal.aborted) return false;
        const [lease] = await this.#leases.acquire([job.id]);
        if (lease === undefined) continue;
        await this.#hold(job, lease);
        this.#liveness.looked();
        worked = true;
      }
    } catch (error) {
      this.#deps.logger.warn({ err: error }, 'looking for reports to make failed');
      return false;
    }
    return worked;
  }

  /** Never rejects. */
  async #hold(job: Job, lease: Lease): Promise<void> {
    const signal = AbortSignal.any([lease.signal, this.#signal]);
    const began = performance.now();
    let begun: Begun | null = null;
    try {
      const loaded = await this.#deps.store.load(report, job.reportId);
      begun = await this.#jobs.begin(job.id);
      if (begun === null) return;
      const outcome = await make({ job, begun, lease, loaded, signal }, { ...this.#deps, jobs: this.#jobs });
      this.#metrics?.ended(outcome, (performance.now() - began) / 1_000);
    } catch (error) {
      this.#metrics?.ended('stopped', (performance.now() - began) / 1_000);
      await this.#putOff(job, lease, error, begun);
    } finally {
      lease.release();
      // Until it is written the next look would pass over what is due at once.
      await this.#leases.flush();
    }
  }

  /** When the database is away too, the row stays as it is, and this time counts as if we had died. */
  async #putOff({ id }: Job, lease: Lease, error: unknown, begun: Begun | null): Promise<void> {
    const { logger, backOffMs = 5_000 } = this.#deps;
    const tell = (fault: unknown): void => logger.warn({ err: fault, runId: id }, 'a report could not be put off');
    // It is somebody else's now.
    if (!lease.isHeld()) {
      if (begun !== null) await this.#jobs.uncount(id).catch(tell);
      return;
    }
    const stopped = this.#signal.aborted;
    const infrastructureFault = stopped || isInfrastructureFault(error);
    const tried = infrastructureFault ? 2 : (begun?.attempts ?? 1) - 1;
    const waitMs = stopped ? 0 : backOff(tried, { firstMs: backOffMs, maxMs: maxBackOffMs });
    if (!stopped) {
      const words = infrastructureFault ? 'a report waits for what it needs' : 'a report could not be made';
      logger[infrastructureFault ? 'warn' : 'error']({ err: error, runId: id, waitMs, maxTries }, words);
    }
    // What was not begun was not counted.
    await this.#jobs.reschedule(id, waitMs, infrastructureFault && begun !== null).catch(tell);
  }
}
