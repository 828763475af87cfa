import { integer, list, oneOf, variable } from '../config-values.ts';

/** Projections, leases and the publisher. */
export const publishingSettings = {
  publishing: variable(
    'PUBLISHING',
    oneOf('on', 'hold'),
    'on' as 'on' | 'hold',
    'hold = this process starts and works, but lets no post, hand-over, undo, comment or copy out; for all processes after a restore',
  ),
  projections: variable(
    'PROJECTIONS',
    list,
    [] as readonly string[],
    'names of the projections this process runs; none = all',
  ),
  leaseTtlMs: variable('LEASE_TTL_MS', integer(300, 600_000), 15_000, 'a lease that is not renewed lapses after this'),
  publishConcurrency: variable(
    'PUBLISH_CONCURRENCY',
    integer(1, 10_000),
    4_096,
    'targets one publisher works on at once; more that are due wait for one to end',
  ),
} as const;

/** Figures of posts and accounts, and the reports made of them. */
export const insightsSettings = {
  insightsConcurrency: variable(
    'INSIGHTS_CONCURRENCY',
    integer(1, 256),
    8,
    'accounts that one process asks their networks for at once, for the figures of their posts and their own',
    'METRICS_CONCURRENCY',
  ),
  reportWaitMs: variable(
    'REPORT_WAIT_MS',
    integer(0, 7 * 86_400_000),
    6 * 3_600_000,
    'how long after it was asked for a report waits until the figures of its days are final; then it is made, and names the days that are not',
  ),
} as const;

/** Deliveries of webhooks. */
export const webhooksSettings = {
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
} as const;
