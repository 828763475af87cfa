import type { Pool } from 'pg';
import type { Clock } from '#runtime/postgres/database-clock.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { endRest, Leases } from '#runtime/work/leases.ts';
import { WakeSignal } from '#runtime/work/wake-signal.ts';
import type { Resting } from './resting.ts';

/** Work that one process at a time does over and over, subject by subject. */

export type SweptKind = 'post' | 'client' | 'account' | 'target' | 'campaign' | 'workspace';

export interface RoundDeps {
  readonly pool: Pool;
  readonly config: { readonly sweepIntervalMs: number; readonly leaseTtlMs: number };
  readonly logger: Logger;
  readonly clock?: Pick<Clock, 'fault'>;
  /** Begins the next round at once. Default: nothing does. */
  readonly wakeSignal?: WakeSignal;
}

/** Runs rounds until the signal aborts; of several processes, only the one with the lease of that name runs them. */
export const runRounds = async (
  { pool, config, logger, clock, wakeSignal = new WakeSignal() }: RoundDeps,
  name: string,
  round: (signal: AbortSignal) => Promise<unknown>,
  signal: AbortSignal,
): Promise<void> => {
  const leases = new Leases({
    pool,
    kind: 'sweep',
    ttlMs: config.leaseTtlMs,
    ...(clock === undefined ? {} : { clock }),
    onError: (error) => logger.warn({ err: error, round: name }, 'the lease of a sweep could not be renewed'),
  });
  const stop = (): void => wakeSignal.wake();
  signal.addEventListener('abort', stop, { once: true });
  try {
    while (!signal.aborted) {
      try {
        const [lease] = await leases.acquire([name]);
        if (lease !== undefined) {
          try {
            await round(AbortSignal.any([signal, lease.signal]));
          } finally {
            // The lease rests for half of the interval, or each process would sweep once per interval.
            lease.release({ notBeforeMs: config.sweepIntervalMs / 2 });
          }
        }
      } catch (error) {
        logger.warn({ err: error, round: name }, 'a sweep failed; the next one starts from the beginning');
      }
      const endedAt = performance.now();
      await wakeSignal.wait(config.sweepIntervalMs, () => signal.aborted);
      if (performance.now() - endedAt < config.sweepIntervalMs / 2) await endRest(pool, 'sweep', [name]);
    }
  } finally {
    signal.removeEventListener('abort', stop);
    await leases.close();
  }
};

export interface AloneDeps {
  readonly logger: Logger;
  readonly resting: Resting;
  readonly signal: AbortSignal;
  readonly onFailure: ((kind: SweptKind) => void) | undefined;
}

/**
 * Works on one subject, so that its failure delays no other: a subject that fails is counted and rests. If a dependency
 * stops two rounds in a row at the same subject, that subject rests as well.
 * @throws when a dependency is unavailable, because every later subject would fail the same way and rest without need
 */
export const alone = async (
  { logger, resting, signal, onFailure }: AloneDeps,
  kind: SweptKind,
  id: string,
  work: () => Promise<void>,
): Promise<void> => {
  if (resting.has(id)) return;
  try {
    await work();
    resting.succeeded(id);
  } catch (error) {
    const isUnavailable = isInfrastructureFault(error);
    if (signal.aborted || (isUnavailable && !resting.endsAgain(id))) throw error;
    onFailure?.(kind);
    logger.error(
      { err: error, [kind]: id, restMs: resting.failed(id) },
      'the sweep failed on this one and passes over it',
    );
    if (isUnavailable) throw error;
  }
};
