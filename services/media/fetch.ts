import { download } from '#runtime/egress/download.ts';
import { type GuardSettings, guardOf } from '#runtime/egress/own-hosts.ts';
import type { FetchFile } from './deps.ts';

/** Imports go through the egress guard, like every address that a caller names. */
export const fetchThroughGuard = (config: GuardSettings): FetchFile => {
  const guard = guardOf(config);
  return (url, options) => download(guard, url, options);
};
