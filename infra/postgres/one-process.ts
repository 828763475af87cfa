import { pause } from '#contracts/base/pause.ts';
import { acquireLease } from './log-lease.ts';
import { backoffMs } from './pool.ts';

export interface KeeperOptions {
  readonly signal: AbortSignal;
  readonly logger: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/**
 * Runs work in one process of the system at a time, until the signal; the others stand by. Failed work is repeated, and
 * work that ends before its signal begins again. A holder notices the loss of its lease late: the work itself must
 * tolerate that another process has begun.
 */
export const runInOneProcess = async (
  { url, name, signal, logger }: KeeperOptions & { readonly url: string; readonly name: string },
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> => {
  for (let failures = 0; !signal.aborted; ) {
    try {
      const lease = await acquireLease({ url, name, signal });
      if (lease === null) continue;
      const began = performance.now();
      try {
        await work(AbortSignal.any([signal, lease.lost]));
      } finally {
        await lease.release();
        if (performance.now() - began > 60_000) failures = 0;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (failures === 0) logger.warn({ err: error }, `${name} cannot be filled now and is tried again`);
    }
    await pause(backoffMs(failures++), signal);
  }
};
