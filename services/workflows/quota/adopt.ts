import { quotaIdOf } from '#domain/ids.ts';
import { placesOf, type QuotaState, quota } from '#domain/quota.ts';
import { monthOf } from '#domain/zones.ts';
import { inGroups } from '../fan-out.ts';
import { type Tending, tendPlaces } from './give-back.ts';

/**
 * Gives places to the targets that were due before the workspace had its quota, or while it had none. They take room
 * from later posts, and none of them is refused. If we die between two pages, the sweeper, or the operator's repeat,
 * gives the rest of them places.
 */

/** A target that needs a place, as the read model has it; its stream decides. */
export interface DueTarget {
  readonly id: string;
  readonly postId: string;
  readonly dueAt: string;
}

/** @param page the next targets behind one, in the order of their due times; empty at the end */
export const adoptTargets = async (
  by: Tending,
  page: (after: DueTarget | null) => Promise<readonly DueTarget[]>,
  signal?: AbortSignal,
): Promise<void> => {
  for (let targets = await page(null); targets.length > 0; ) {
    const lacking = await withoutPlace(by, targets);
    const posts = [...Map.groupBy(lacking, ({ postId }) => postId)];
    await inGroups(posts, ([postId, some]) =>
      tendPlaces(
        by,
        postId,
        some.map(({ id }) => id),
      ),
    );
    if (signal?.aborted === true) return;
    targets = await page(targets.at(-1) ?? null);
  }
};

const withoutPlace = async (
  { store, context, rules }: Tending,
  targets: readonly DueTarget[],
): Promise<readonly DueTarget[]> => {
  const months = new Map<string, QuotaState>();
  const lacking: DueTarget[] = [];
  for (const one of targets) {
    const month = monthOf(one.dueAt, rules.timezone);
    const state = months.get(month) ?? (await store.load(quota, quotaIdOf(context.workspaceId, month))).state;
    months.set(month, state);
    if (placesOf(state, one.postId)[one.id] === undefined) lacking.push(one);
  }
  return lacking;
};
