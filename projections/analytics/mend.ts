import type { IngestOptions } from './ingest.ts';
import { liveVersion } from './live.ts';
import { isLost } from './lost.ts';
import { rebuildAnalytics } from './rebuild.ts';

/**
 * Rebuilds the analytics where ClickHouse lost its observations. Runs without an operator's order only for our own
 * embedded engine: an external server that is empty may be the wrong one. After a crash the next start begins again.
 * @param report receives the text for /readyz while the rebuild runs
 */
export const mendLost = async (options: IngestOptions, report: (words: string) => void): Promise<void> => {
  const { client, pool, logger } = options;
  if (!(await isLost(client, await liveVersion(pool), pool))) return;
  const words = 'the figures were lost and are being rebuilt';
  logger.warn(words);
  report(words);
  await rebuildAnalytics({
    ...options,
    reason: 'lost',
    onProgress: (share) => report(`${words}: ${Math.floor(share * 100)} % of the store read`),
  });
};
