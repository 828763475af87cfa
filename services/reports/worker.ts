import { backOff } from '#contracts/base/back-off.ts';
import { report } from '#domain/report.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import { LeasedWork } from '#runtime/work/leased-work.ts';
import type { Lease } from '#runtime/work/leases.ts';
import type { WakeSignal } from '#runtime/work/wake-signal.ts';
import type { ReportDeps } from './deps.ts';
import { type Begun, type Job, ReportJobs } from './jobs.ts';
import { make, maxTries } from './make.ts';
import { type ReportMetrics, reportMetrics } from './metrics.ts';

/**
 * Makes one run at a time, because drawing keeps a core busy. Workspaces take turns. A lost lease ends the work on a
 * run, and the worker that takes the run over makes it from the start.
 */

const leaseKind = 'report';
/** Longest wait after faults in a row, milliseconds. */
const maxBackOffMs = 600_000;
/** Poll intervals without a search after which the worker is not ready: it does not search while it makes a run. */
const stalePolls = 60;

export class ReportWorker {
  readonly #deps: ReportDeps;
  readonly #signal: AbortSignal;
  readonly #jobs: ReportJobs;
  readonly #work: LeasedWork<Job>;
  readonly #metrics: ReportMetrics | null;

  constructor(deps: ReportDeps, wakeSignal: WakeSignal, signal: AbortSignal) {
    const { pool, config, clock, logger, readiness, registry, pollMs = 1_000 } = deps;
    this.#deps = deps;
    this.#signal = signal;
    this.#jobs = new ReportJobs(pool);
    this.#metrics = registry === undefined ? null : reportMetrics(registry, () => this.#jobs.length());
    this.#work = new LeasedWork({
      ...{ pool, leaseKind, leaseTtlMs: config.leaseTtlMs, clock, logger, pollMs, stalePolls, wakeSignal, signal },
      idOf: ({ id }) => id,
      work: (job, lease, stop) => this.#make(job, lease, stop),
    });
    readiness?.add('reports', async () => this.#work.liveness.check());
  }

  run(): Promise<void> {
    return this.#work.run(() => this.#beginDue(), 'reports to make');
  }

  /** @returns whether it worked on a run */
  async #beginDue(): Promise<boolean> {
    let worked = false;
    this.#work.liveness.searched();
    await this.#jobs.endLives();
    for (const job of await this.#jobs.due(leaseKind)) {
      if (this.#signal.aborted) return false;
      if ((await this.#work.begin([job])).length === 0) continue;
      await this.#work.idle();
      this.#work.liveness.searched();
      worked = true;
    }
    return worked;
  }

  async #make(job: Job, lease: Lease, signal: AbortSignal): Promise<null> {
    const began = performance.now();
    let begun: Begun | null = null;
    try {
      const loaded = await this.#deps.store.load(report, job.reportId);
      begun = await this.#jobs.begin(job.id);
      if (begun === null) return null;
      const outcome = await make({ job, begun, lease, loaded, signal }, { ...this.#deps, jobs: this.#jobs });
      this.#metrics?.ended(outcome, (performance.now() - began) / 1_000);
    } catch (error) {
      this.#metrics?.ended('stopped', (performance.now() - began) / 1_000);
      await this.#reschedule(job, lease, error, begun);
    }
    return null;
  }

  /** When the database is unavailable too, the row stays as it is, and this try counts as if the process had died. */
  async #reschedule({ id }: Job, lease: Lease, error: unknown, begun: Begun | null): Promise<void> {
    const { logger, backOffMs = 5_000 } = this.#deps;
    const warn = (fault: unknown): void => logger.warn({ err: fault, runId: id }, 'a report could not be rescheduled');
    // Another worker has the lease now.
    if (!lease.isHeld()) {
      if (begun !== null) await this.#jobs.uncount(id).catch(warn);
      return;
    }
    const stopped = this.#signal.aborted;
    const infrastructureFault = stopped || isInfrastructureFault(error);
    const failures = infrastructureFault ? 2 : (begun?.attempts ?? 1) - 1;
    const waitMs = stopped ? 0 : backOff(failures, { firstMs: backOffMs, maxMs: maxBackOffMs });
    if (!stopped) {
      const words = infrastructureFault ? 'a report waits for an unavailable dependency' : 'a report could not be made';
      logger[infrastructureFault ? 'warn' : 'error']({ err: error, runId: id, waitMs, maxTries }, words);
    }
    // A try that was not begun was not counted.
    await this.#jobs.reschedule(id, waitMs, infrastructureFault && begun !== null).catch(warn);
  }
}
