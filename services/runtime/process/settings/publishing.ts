import { durations, integer, list, oneOf, optional } from '../config-values.ts';
import { variable } from './variable.ts';

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
  boundaryDeadlineMs: variable(
    'BOUNDARY_DEADLINE_MS',
    optional(integer(100, 600_000)),
    null as number | null,
    'time the boundary call may take; none = the adapter’s own (30 s, sandbox 3 s)',
  ),
  settleWindowMs: variable(
    'SETTLE_WINDOW_MS',
    optional(integer(0, 7 * 86_400_000)),
    null as number | null,
    'how long after the deadline “absent” stays unknown; none = the adapter’s own (≥ 10 min, sandbox 10 s)',
  ),
  reconcileDelaysMs: variable(
    'RECONCILE_DELAYS_MS',
    durations,
    [0, 5_000, 30_000, 120_000, 600_000] as readonly number[],
    'waits between reconciles of an unknown outcome; then hourly for 72 h',
  ),
  deferDelaysMs: variable(
    'DEFER_DELAYS_MS',
    durations,
    [30_000, 120_000, 600_000] as readonly number[],
    'waits after transient failures before the call; then the target fails',
  ),
  maxRateLimits: variable('MAX_RATE_LIMITS', integer(0, 1_000), 10, 'automatic retries after a rate limit'),
  sweepIntervalMs: variable(
    'SWEEP_INTERVAL_MS',
    integer(100, 3_600_000),
    30_000,
    'how often the sweeper looks for plans that were not carried out',
  ),
  publishConcurrency: variable(
    'PUBLISH_CONCURRENCY',
    integer(1, 10_000),
    4_096,
    'targets one publisher works on at once; more that are due wait for one to end',
  ),
} as const;
