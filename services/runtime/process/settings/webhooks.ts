import { durations, integer } from '../config-values.ts';
import { variable } from './variable.ts';

/** Deliveries of webhooks. */
export const webhooksSettings = {
  webhookRetryDelaysMs: variable(
    'WEBHOOK_RETRY_DELAYS_MS',
    durations,
    [
      0, 5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 50_400_000, 72_000_000, 86_400_000,
    ] as readonly number[],
    'waits before each attempt of a webhook delivery, counted from the attempt before; then the delivery has failed',
  ),
  webhooksPerWorkspace: variable(
    'WEBHOOKS_PER_WORKSPACE',
    integer(1, 10_000),
    50,
    'webhook endpoints a workspace may have; those it has beyond that go on working',
  ),
  webhookPerEndpoint: variable(
    'WEBHOOK_PER_ENDPOINT',
    integer(1, 10_000),
    64,
    'webhook requests under way to one endpoint; of this and the other three of its kind at most half for retries and replays',
  ),
  webhookPerHost: variable(
    'WEBHOOK_PER_HOST',
    integer(1, 10_000),
    128,
    'webhook requests under way of one tenant to one host (name and port), over all its endpoints there',
  ),
  webhookHostFailures: variable(
    'WEBHOOK_HOST_FAILURES',
    integer(1, 10_000),
    50,
    'webhook requests a second of one tenant to one host from endpoints that do not take what they are sent; first as many as WEBHOOK_PER_HOST',
  ),
  webhookPerTenant: variable('WEBHOOK_PER_TENANT', integer(1, 10_000), 256, 'webhook requests under way of one tenant'),
  webhookConcurrency: variable('WEBHOOK_CONCURRENCY', integer(1, 10_000), 1_024, 'webhook requests under way at all'),
  webhookExchangeMs: variable(
    'WEBHOOK_EXCHANGE_MS',
    integer(50, 60_000),
    15_000,
    'time a webhook request may take, from the lookup of the name to the end of the answer',
  ),
  webhookLeaseMs: variable(
    'WEBHOOK_LEASE_MS',
    integer(100, 600_000),
    32_000,
    'after this another sender may send a delivery that a sender has begun; more than twice WEBHOOK_EXCHANGE_MS',
  ),
  webhookBreakerFailures: variable(
    'WEBHOOK_BREAKER_FAILURES',
    integer(1, 10_000),
    10,
    'failures in a row after which nothing is sent to an endpoint for a while',
  ),
  webhookBreakerMs: variable(
    'WEBHOOK_BREAKER_MS',
    integer(10, 3_600_000),
    30_000,
    'how long that while is at first; it doubles up to twenty times this',
  ),
  webhookDisableAfterMs: variable(
    'WEBHOOK_DISABLE_AFTER_MS',
    integer(100, 31 * 86_400_000),
    5 * 86_400_000,
    'an endpoint without a success for so long is turned off',
  ),
} as const;
