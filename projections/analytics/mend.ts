import type { IngestOptions } from './ingest.ts';
import { liveVersion } from './live.ts';
import { isLost } from './lost.ts';
import { rebuildAnalytics } from './rebuild.ts';

/**
 * Makes the analytics anew where ClickHouse lost the observations it held. Without an operator's order only where the engine
 * is our own: an external server that is empty may be the wrong one. If we die half-way the next start begins anew.
 * @param tell takes the words for /readyz while it runs
 */
export const mendLost = async (options: IngestOptions, tell: (words: string) => void): Promise<void> => {
  const { client, pool, logger } = options;
  if (!(await isLost(client, await liveVersion(pool), pool))) return;
  const words = 'the figures were lost and are being made anew';
  logger.warn(words);
  tell(words);
  await rebuildAnalytics({
    ...options,
    onProgress: (share) => tell(`${words}: ${Math.floor(share * 100)} % of the store read`),
  });
};
