import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import type { Platform } from '#schemas/common.ts';

export interface AdapterTimes {
  readonly boundaryDeadlineMs: number;
  readonly settleWindowMs: number;
}

/** The configured times; a time that is not configured is the adapter's own. */
export const adapterTimes = (
  adapter: PlatformAdapter,
  platform: Platform,
  config: { readonly boundaryDeadlineMs: number | null; readonly settleWindowMs: number | null },
): AdapterTimes => ({
  boundaryDeadlineMs: config.boundaryDeadlineMs ?? adapter.boundaryDeadlineMs,
  settleWindowMs: config.settleWindowMs ?? adapter.settleWindowMs(platform),
});
