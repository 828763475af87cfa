import type { Pool } from 'pg';
import { isConflict } from '#contracts/ports/event-store.ts';
import { birthOf } from '#domain/decider.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { isWorkedOn } from '#projections/models/overdue-targets.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { causedBy, serviceContext } from '#runtime/eventing/service-context.ts';

/**
 * Records on one target what a round found. An append would take the claim from a worker under way, so a publishing target
 * that a worker holds is left for a later round. A worker that takes it after the question appends first, so this append
 * fails on the revision; it is not decided again. After a crash behind the append the decider yields no second event.
 * @returns whether it appended anything
 */
export const recordOnTarget = async (
  { store, pool }: { readonly store: DomainStore; readonly pool: Pool },
  id: string,
  command: TargetCommand,
  now: number,
): Promise<boolean> => {
  const loaded = await store.load(target, id);
  const { state, events } = loaded;
  const first = birthOf(target, events);
  const last = events.at(-1);
  if (state.status === 'none' || first === undefined || last === undefined) return false;
  if (state.status === 'publishing' && (await isWorkedOn(pool, id))) return false;
  const context = serviceContext('outcomes', { ...causedBy(first), causationId: last.id }, now);
  const options = { partitionKey: state.common.postId, redecide: false, loaded } as const;
  try {
    const { appended } = await execute(store, target, id, command, context, options);
    return appended.length > 0;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
};
