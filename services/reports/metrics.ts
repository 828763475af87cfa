import { Counter, Gauge, Histogram, type Registry, scraped } from '#runtime/process/metrics.ts';
import type { Outcome } from './make.ts';

/** The worker's own metrics. */
export interface ReportMetrics {
  /**
   * `nothing`: there was nothing left to make; `waiting`: its days are not final; `stopped`: the worker tries again.
   */
  ended(outcome: Outcome | 'stopped', seconds: number): void;
}

export const reportMetrics = (registry: Registry, queued: () => Promise<number>): ReportMetrics => {
  const registers = [registry];
  const runs = new Counter({
    name: 'report_runs_total',
    help: 'runs of reports that were worked on, by how that ended',
    labelNames: ['outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'report_run_seconds',
    help: 'time that the work on a run took',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60],
    registers,
  });
  const asked = scraped(queued);
  new Gauge({
    name: 'report_queue_length',
    help: 'runs of reports that are to be made',
    registers,
    async collect() {
      this.set((await asked()) ?? Number.NaN);
    },
  });
  return {
    ended: (outcome, took) => {
      runs.inc({ outcome });
      seconds.observe(took);
    },
  };
};
