import type { MediaStep } from '#domain/media.ts';
import { Counter, Gauge, Histogram, type Registry, scraped } from '#runtime/process/metrics.ts';

/** The worker's own metrics. */
export interface MediaMetrics {
  /**
   * `outcome`: `done`, `refused` (the file is at fault), `stopped` (drained, postponed, or the lease was lost) or
   * `failed`.
   */
  step(step: MediaStep, outcome: 'done' | 'refused' | 'stopped' | 'failed', seconds: number): void;
}

export const mediaMetrics = (
  registry: Registry,
  { queued, underWay }: { readonly queued: () => Promise<number>; readonly underWay: () => number },
): MediaMetrics => {
  const registers = [registry];
  const steps = new Counter({
    name: 'media_steps_total',
    help: 'steps of media files, by how they ended',
    labelNames: ['step', 'outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'media_step_seconds',
    help: 'time that a step of a media file took',
    labelNames: ['step'],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200],
    registers,
  });
  const asked = scraped(queued);
  new Gauge({
    name: 'media_queue_length',
    help: 'media files that something is to be done for',
    registers,
    async collect() {
      this.set((await asked()) ?? Number.NaN);
    },
  });
  new Gauge({
    name: 'media_in_work',
    help: 'media files that this process works on',
    registers,
    collect() {
      this.set(underWay());
    },
  });
  return {
    step: (step, outcome, took) => {
      steps.inc({ step, outcome });
      seconds.observe({ step }, took);
    },
  };
};
