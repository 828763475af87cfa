import { Counter, Gauge, type Registry, scraped } from '#runtime/process/metrics.ts';
import type { Platform } from '#schemas/common.ts';

/** The worker's own metrics. */
export interface WorkMetrics {
  /** One answer with figures. */
  fetched(platform: Platform): void;
  parked(platform: Platform): void;
  /** A figure that was left out of an observation. */
  odd(platform: Platform, field: string): void;
  failed(platform: Platform, failure: 'rate_limited' | 'reauth_required' | 'unavailable'): void;
}

export const workMetrics = (
  registry: Registry,
  { lag, underWay }: { readonly lag: () => Promise<number>; readonly underWay: () => number },
): WorkMetrics => {
  const registers = [registry];
  const labelNames = ['platform'];
  const fetched = new Counter({
    name: 'insights_fetched_total',
    help: 'answers with figures of a post or an account',
    labelNames,
    registers,
  });
  const parked = new Counter({
    name: 'insights_parked_total',
    help: 'answers of networks that could not be parsed and were parked',
    labelNames,
    registers,
  });
  const odd = new Counter({
    name: 'insights_odd_figures_total',
    help: 'figures left out of an observation because they cannot be counts; the observation keeps the raw answer',
    labelNames: ['platform', 'field'],
    registers,
  });
  const failures = new Counter({
    name: 'insights_failures_total',
    help: 'posts and accounts without figures from their network, by reason',
    labelNames: ['platform', 'failure'],
    registers,
  });
  const asked = scraped(lag);
  new Gauge({
    name: 'insights_lag_seconds',
    help: 'since when the first post or account is due that could be asked for',
    registers,
    async collect() {
      this.set((await asked()) ?? Number.NaN);
    },
  });
  new Gauge({
    name: 'insights_in_work',
    help: 'accounts that this process asks for',
    registers,
    collect() {
      this.set(underWay());
    },
  });
  return {
    fetched: (platform) => fetched.inc({ platform }),
    parked: (platform) => parked.inc({ platform }),
    odd: (platform, field) => odd.inc({ platform, field }),
    failed: (platform, failure) => failures.inc({ platform, failure }),
  };
};
