import { download } from '#runtime/egress/download.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import type { Config } from '#runtime/process/config.ts';
import type { FetchFile } from './deps.ts';

/** Imports go through the egress guard, like every address that a caller names. */
export const fetchThroughGuard = (config: Pick<Config, 'baseUrl' | 'consoleUrl' | 'privateTargets'>): FetchFile => {
  const ownHosts = [config.baseUrl, config.consoleUrl].flatMap((url) => (url === null ? [] : [new URL(url).host]));
  const guard = new EgressGuard({ privateTargets: config.privateTargets, ownHosts: () => ownHosts });
  return (url, options) => download(guard, url, options);
};
