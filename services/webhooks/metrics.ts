import { Counter, Gauge, Histogram, type Registry } from '#runtime/process/metrics.ts';

/** The sender's own metrics. */
export interface SenderMetrics {
  /** A delivery ended: delivered or failed. */
  over(outcome: string): void;
  /** Seconds from its event to its success. */
  delivered(seconds: number): void;
  attempted(result: string): void;
  lag(seconds: number): void;
}

export const senderMetrics = (
  registry: Registry,
  { open, underWay }: { readonly open: () => number; readonly underWay: () => number },
): SenderMetrics => {
  const registers = [registry];
  const deliveries = new Counter({
    name: 'webhook_deliveries_total',
    help: 'deliveries that are over, by outcome',
    labelNames: ['outcome'],
    registers,
  });
  const attempts = new Counter({
    name: 'webhook_attempts_total',
    help: 'attempts, by the class of the status that came, or by why none came',
    labelNames: ['result'],
    registers,
  });
  const seconds = new Histogram({
    name: 'webhook_delivery_seconds',
    help: 'from an event to its success at a receiver',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600, 3_600, 86_400, 259_200],
    registers,
  });
  const lag = new Gauge({
    name: 'webhook_queue_lag_seconds',
    help: 'for how long the oldest delivery that may be sent has been due',
    registers,
  });
  new Gauge({
    name: 'webhook_breaker_open',
    help: 'endpoints whose breaker is not closed',
    registers,
    collect() {
      this.set(open());
    },
  });
  new Gauge({
    name: 'webhook_in_flight',
    help: 'requests under way',
    registers,
    collect() {
      this.set(underWay());
    },
  });
  return {
    over: (outcome) => deliveries.inc({ outcome }),
    delivered: (value) => seconds.observe(value),
    attempted: (result) => attempts.inc({ result }),
    lag: (value) => lag.set(value),
  };
};

/** Label of an attempt: few values, because receivers may answer anything. */
export const resultOf = (status: number | null, error: string | null): string =>
  status === null ? (error ?? 'unknown') : `${Math.floor(status / 100)}xx`;
