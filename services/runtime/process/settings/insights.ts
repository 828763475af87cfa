import { durations, integer } from '../config-values.ts';
import { variable } from './variable.ts';

/** Figures of posts and accounts, and the reports made of them. */
export const insightsSettings = {
  insightsConcurrency: variable(
    'INSIGHTS_CONCURRENCY',
    integer(1, 256),
    8,
    'accounts that one process asks their networks for at once, for the figures of their posts and their own',
  ),
  insightsYoungDelaysMs: variable(
    'INSIGHTS_YOUNG_DELAYS_MS',
    durations,
    [3_600_000, 21_600_000, 86_400_000] as readonly number[],
    'when the figures of a post are fetched after its publication, rising; after the first also after each midnight of its workspace for 90 days. A story has times of its own',
  ),
  reportWaitMs: variable(
    'REPORT_WAIT_MS',
    integer(0, 7 * 86_400_000),
    6 * 3_600_000,
    'how long after it was asked for a report waits until the figures of its days are final; then it is made, and names the days that are not',
  ),
} as const;
