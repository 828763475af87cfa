import { type PageAfter, targetsWithWorkBefore } from '#projections/queries/restored-targets.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { completeRestore, newestRestore } from '#runtime/work/restores.ts';
import { platforms } from '#schemas/common.ts';
import { recordOnTarget } from './record-on-target.ts';
import { Resting } from './resting.ts';
import { alone, type RoundDeps, runRounds, type SweptKind } from './rounds.ts';

/**
 * After a restore: records every target that was due before it as unknown, so that a person sees at once what may be out,
 * also while publishing is held. A target that a page lacks, because the read models are behind, is recorded at its
 * claim, and so is one that a worker has just taken. If we die here, the next round reads all pages again.
 */

export interface RestoresDeps extends RoundDeps {
  readonly store: DomainStore;
  readonly now?: () => number;
  readonly resting?: Resting;
  readonly onFailure?: (kind: SweptKind) => void;
}

/** One round over all targets that the newest restore concerns. @returns how many it recorded */
export const recordRestore = async (deps: Omit<RestoresDeps, 'config'>, signal: AbortSignal): Promise<number> => {
  const { store, pool, logger, now = Date.now, resting = new Resting(), onFailure } = deps;
  const restore = await newestRestore(pool);
  if (restore === null || restore.completedAt !== null) return 0;
  const { restoredAt } = restore;
  let recorded = 0;
  let isWhole = true;
  for (const of of [...platforms, 'asked'] as const) {
    let after: PageAfter = null;
    do {
      const page: Awaited<ReturnType<typeof targetsWithWorkBefore>> = await targetsWithWorkBefore(
        pool,
        restoredAt,
        of,
        after,
      );
      for (const id of page.ids) {
        if (signal.aborted) return recorded;
        let isDone = false;
        await alone({ logger, resting, signal, onFailure }, 'target', id, async () => {
          const at = now();
          const command = { type: 'RecordRestored', restoredAt, reconcileAt: new Date(at).toISOString() } as const;
          if (await recordOnTarget({ store, pool }, id, command, at)) {
            faultPoint('outcomes:after-restored');
            recorded += 1;
          }
          isDone = true;
        });
        isWhole &&= isDone;
      }
      after = page.next;
    } while (after !== null);
  }
  if (isWhole) await completeRestore(pool, restoredAt);
  logger.warn({ restoredAt, targets: recorded, isWhole }, 'after a restore: what was due is recorded as unknown');
  return recorded;
};

export const runRestores = (given: RestoresDeps, signal: AbortSignal): Promise<void> => {
  const deps = { resting: new Resting(), ...given };
  return runRounds(deps, 'restores', (stop) => recordRestore(deps, stop), signal);
};
