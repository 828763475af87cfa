import { quotaIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { placesOf, type QuotaState } from '#domain/quota.ts';
import { monthOf } from '#domain/zones.ts';
import { inGroups, planOf } from '../fan-out.ts';
import { type Tending, tendPlaces } from './give-back.ts';
import { loadPlaces } from './write.ts';

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

/** The streams of all targets of so many posts are read at once, which share the connections with other work. */
const postsAtOnce = 4;

/** @param page the next targets behind one, in the order of their due times; empty at the end */
export const adoptTargets = async (
  by: Tending,
  page: (after: DueTarget | null) => Promise<readonly DueTarget[]>,
  signal?: AbortSignal,
): Promise<void> => {
  for (let targets = await page(null); targets.length > 0; ) {
    const lacking = await withoutPlace(by, targets);
    const posts = [...Map.groupBy(lacking, ({ postId }) => postId)];
    await inGroups(posts, ([postId, some]) => adoptPost(by, postId, some), postsAtOnce);
    if (signal?.aborted === true) return;
    targets = await page(targets.at(-1) ?? null);
  }
};

/**
 * All targets of the post at once: their times differ, so that the pages have them one by one, and the stream of the
 * month would get an event for each.
 */
const adoptPost = async (by: Tending, postId: string, some: readonly DueTarget[]): Promise<void> => {
  const planned = planOf((await by.store.load(post, postId)).state)?.plan.targets ?? [];
  const ids = new Set([...some.map(({ id }) => id), ...planned.map(({ targetId }) => targetId)]);
  await tendPlaces(by, postId, [...ids]);
};

const withoutPlace = async (
  { store, context, rules }: Tending,
  targets: readonly DueTarget[],
): Promise<readonly DueTarget[]> => {
  const months = new Map<string, QuotaState>();
  const lacking: DueTarget[] = [];
  for (const one of targets) {
    const month = monthOf(one.dueAt, rules.timezone);
    const state = months.get(month) ?? (await loadPlaces(store, quotaIdOf(context.workspaceId, month))).state;
    months.set(month, state);
    if (placesOf(state, one.postId)[one.id] === undefined) lacking.push(one);
  }
  return lacking;
};
