import type { SenderConfig } from '#services/webhooks/deps.ts';

/** Leases that lapse while a test waits for it. */
export const short = {
  webhookRetryDelaysMs: [0, 20, 20, 20],
  webhookExchangeMs: 400,
  webhookLeaseMs: 1_000,
  webhookBreakerFailures: 1_000,
  sweepIntervalMs: 100,
} satisfies Partial<SenderConfig>;

/** Of senders whose requests must get their answers on a busy machine too. No test waits for these leases. */
export const patient = { ...short, webhookExchangeMs: 30_000, webhookLeaseMs: 90_000 } satisfies Partial<SenderConfig>;
