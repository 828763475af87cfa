import type { Pool } from 'pg';
import { isConflict } from '#contracts/ports/event-store.ts';
import { birthOf } from '#domain/decider.ts';
import { target } from '#domain/target.ts';
import { isWorkedOn } from '#projections/overdue-targets.ts';
import { type PageAfter, targetsWithWorkBefore } from '#projections/restored-targets.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { causedBy, serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { completeRestore, newestRestore } from '#runtime/work/restores.ts';
import { platforms } from '#schemas/common.ts';
import { Resting } from './resting.ts';
import { alone, type RoundDeps, runRounds, type SweptKind } from './rounds.ts';

/**
 * After a restore: records every target that was due before it as unknown, so that a person sees at once what may be out,
 * also while publishing is held. A target that a page lacks, because the read models are behind, is recorded at its
 * claim. If we die here, the next round reads all pages again, and the decider yields no second event.
 */

export interface RestoresDeps extends RoundDeps {
  readonly store: DomainStore;
  readonly now?: () => number;
  readonly resting?: Resting;
  readonly onFailure?: (kind: SweptKind) => void;
}

const record = async (
  store: DomainStore,
  pool: Pool,
  id: string,
  restoredAt: string,
  now: number,
): Promise<boolean> => {
  const loaded = await store.load(target, id);
  const { state, events } = loaded;
  const first = birthOf(target, events);
  const last = events.at(-1);
  if (state.status === 'none' || first === undefined || last === undefined) return false;
  if (state.status === 'publishing' && (await isWorkedOn(pool, id))) return false;
  const context = serviceContext('outcomes', { ...causedBy(first), causationId: last.id }, now);
  const command = { type: 'RecordRestored', restoredAt, reconcileAt: new Date(now).toISOString() } as const;
  try {
    const partitionKey = state.common.postId;
    const { appended } = await execute(store, target, id, command, context, { partitionKey, redecide: false, loaded });
    faultPoint('outcomes:after-restored');
    return appended.length > 0;
  } catch (error) {
    // A worker has taken it: it asks the same question before its claim.
    if (isConflict(error)) return false;
    throw error;
  }
};

/** One round over all targets that the newest restore concerns. @returns how many it recorded */
export const recordRestore = async (deps: Omit<RestoresDeps, 'config'>, signal: AbortSignal): Promise<number> => {
  const { store, pool, logger, now = Date.now, resting = new Resting(), onFailure } = deps;
  const restore = await newestRestore(pool);
  if (restore === null || restore.completedAt !== null) return 0;
  const { restoredAt } = restore;
  let recorded = 0;
  let isWhole = true;
  for (const of of [...platforms, 'unknown'] as const) {
    let after: PageAfter = null;
    do {
      const page: Awaited<ReturnType<typeof targetsWithWorkBefore>> = await targetsWithWorkBefore(
        pool,
        restoredAt,
        of,
        after,
      );
      for (const { id } of page.targets) {
        if (signal.aborted) return recorded;
        let isDone = false;
        await alone({ logger, resting, signal, onFailure }, 'target', id, async () => {
          if (await record(store, pool, id, restoredAt, now())) recorded += 1;
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
