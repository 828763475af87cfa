import { deferredLimitMs, overdueAfterMs } from '#domain/post-target/target.ts';
import {
  beforeAllTargets,
  deferredSql,
  type UnfinishedTarget,
  unfinishedSql,
  unfinishedTargets,
} from '#projections/models/overdue-targets.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { recordOnTarget } from './record-on-target.ts';
import { Resting } from './resting.ts';
import { alone, type RoundDeps, runRounds, type SweptKind } from './rounds.ts';

/**
 * Reports targets that are unfinished long after their attempt was due, or that were rescheduled for a day. It runs in
 * the outcomes process and not in the publisher, so that it works when all publishers are down.
 */

export interface OverdueDeps extends RoundDeps {
  readonly store: DomainStore;
  readonly now?: () => number;
  readonly resting?: Resting;
  readonly onFailure?: (kind: SweptKind) => void;
  /** Called for each target that is recorded as overdue. */
  readonly onOverdue?: () => void;
}

const searches = [
  { sql: unfinishedSql, afterMs: overdueAfterMs },
  { sql: deferredSql, afterMs: deferredLimitMs },
] as const;

/** One round over all overdue targets. @returns how many it reported */
export const tellOverdue = async (deps: Omit<OverdueDeps, 'config'>, signal: AbortSignal): Promise<number> => {
  const { store, pool, logger, now = Date.now, resting = new Resting(), onFailure, onOverdue } = deps;
  let reported = 0;
  for (const { sql, afterMs } of searches) {
    const before = new Date(now() - afterMs);
    for (let after: UnfinishedTarget | undefined = beforeAllTargets; after !== undefined; ) {
      const targets: readonly UnfinishedTarget[] = await unfinishedTargets(pool, sql, after, before);
      for (const { id } of targets) {
        if (signal.aborted) return reported;
        await alone({ logger, resting, signal, onFailure }, 'target', id, async () => {
          const at = now();
          const command = { type: 'RecordOverdue', now: new Date(at).toISOString() } as const;
          if (!(await recordOnTarget({ store, pool }, id, command, at))) return;
          faultPoint('outcomes:after-overdue');
          reported += 1;
          onOverdue?.();
        });
      }
      after = targets.at(-1);
    }
  }
  if (reported > 0) logger.warn({ targets: reported }, 'targets are overdue');
  return reported;
};

export const runOverdue = (given: OverdueDeps, signal: AbortSignal): Promise<void> => {
  const deps = { resting: new Resting(), ...given };
  return runRounds(deps, 'overdue', (stop) => tellOverdue(deps, stop), signal);
};
