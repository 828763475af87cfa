import type { SenderConfig } from '#services/webhooks/deps.ts';

/** Leases that lapse while a test waits for it. */
export const short = {
  webhookRetryDelaysMs: [0, 20, 20, 20],
  webhookExchangeMs: 400,
  webhookLeaseMs: 1_000,
  webhookBreakerFailures: 1_000,
  sweepIntervalMs: 100,
} satisfies Partial<SenderConfig>;

/** Of a sender that is killed at its first exchange: a busy machine must not end that one before the receiver has it. */
export const killed = { ...short, webhookExchangeMs: 3_000, webhookLeaseMs: 7_000 } satisfies Partial<SenderConfig>;
