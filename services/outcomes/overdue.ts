import type { Pool } from 'pg';
import { isConflict } from '#contracts/ports/event-store.ts';
import { birthOf } from '#domain/decider.ts';
import { deferredLimitMs, overdueAfterMs, target } from '#domain/target.ts';
import {
  beforeAllTargets,
  deferredSql,
  isWorkedOn,
  type UnfinishedTarget,
  unfinishedSql,
  unfinishedTargets,
} from '#projections/overdue-targets.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { causedBy, serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { Resting } from './resting.ts';
import { alone, type RoundDeps, runRounds, type SweptKind } from './rounds.ts';

/**
 * Tells of targets that are unfinished long after their attempt was due, or that were put off for a day. It runs in the outcomes process and not in the
 * publisher, so that it works when all publishers are down.
 */

export interface OverdueDeps extends RoundDeps {
  readonly store: DomainStore;
  readonly now?: () => number;
  readonly resting?: Resting;
  readonly onFailure?: (kind: SweptKind) => void;
  /** Called for each target that is recorded as overdue. */
  readonly onOverdue?: () => void;
}

/**
 * Records one target as overdue. An append would take the claim from a worker under way, so a publishing target that a
 * worker holds is left for a later round. A worker that takes it after the question appends first, so this append fails
 * on the revision; it is not decided again. After a crash behind the append the decider yields no second event.
 */
const record = async (store: DomainStore, pool: Pool, id: string, now: number): Promise<boolean> => {
  const loaded = await store.load(target, id);
  const { state, events } = loaded;
  const first = birthOf(target, events);
  const last = events.at(-1);
  if (state.status === 'none' || first === undefined || last === undefined) return false;
  if (state.status === 'publishing' && (await isWorkedOn(pool, id))) return false;
  const context = serviceContext('outcomes', { ...causedBy(first), causationId: last.id }, now);
  const command = { type: 'RecordOverdue', now: new Date(now).toISOString() } as const;
  try {
    const { appended } = await execute(store, target, id, command, context, {
      partitionKey: state.common.postId,
      redecide: false,
      loaded,
    });
    faultPoint('outcomes:after-overdue');
    return appended.length > 0;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
};

const searches = [
  { sql: unfinishedSql, afterMs: overdueAfterMs },
  { sql: deferredSql, afterMs: deferredLimitMs },
] as const;

/** One round over all overdue targets. @returns how many it told of */
export const tellOverdue = async (deps: Omit<OverdueDeps, 'config'>, signal: AbortSignal): Promise<number> => {
  const { store, pool, logger, now = Date.now, resting = new Resting(), onFailure, onOverdue } = deps;
  let told = 0;
  for (const { sql, afterMs } of searches) {
    const before = new Date(now() - afterMs);
    for (let after: UnfinishedTarget | undefined = beforeAllTargets; after !== undefined; ) {
      const targets: readonly UnfinishedTarget[] = await unfinishedTargets(pool, sql, after, before);
      for (const { id } of targets) {
        if (signal.aborted) return told;
        await alone({ logger, resting, signal, onFailure }, 'target', id, async () => {
          if (!(await record(store, pool, id, now()))) return;
          told += 1;
          onOverdue?.();
        });
      }
      after = targets.at(-1);
    }
  }
  if (told > 0) logger.warn({ targets: told }, 'targets are overdue');
  return told;
};

export const runOverdue = (given: OverdueDeps, signal: AbortSignal): Promise<void> => {
  const deps = { resting: new Resting(), ...given };
  return runRounds(deps, 'overdue', (stop) => tellOverdue(deps, stop), signal);
};
