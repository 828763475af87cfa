import { quotaIdOf, testTwinIdOf } from '#domain/ids.ts';
import { target } from '#domain/post-target/target.ts';
import { placesOf, postsWithPlaces, quota } from '#domain/quota.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import type { Platform } from '#schemas/common.ts';
import { type QuotaProgress, sweepQuotas } from '#services/outcomes/quotas.ts';
import { recordOutcomes } from '#services/workflows/posts/outcomes.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { abandonMs } from '#services/workflows/quota/give-back.ts';
import { type ComposerOptions, composer } from './composing.ts';
import type { World } from './http.ts';

/** A sandbox workspace with a quota, in UTC months as its zone has them, and what its months hold. */

/** Middle of the month so many months from now, in UTC. */
export const monthsAhead = (months: number): { readonly month: string; readonly at: string } => {
  const now = new Date();
  const at = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, 15, 12)).toISOString();
  return { month: at.slice(0, 7), at };
};

export const quotaWorld = async (
  world: World,
  limit: number | null,
  platforms: readonly Platform[] = ['x', 'bluesky'],
  options: Omit<ComposerOptions, 'by'> = {},
  given?: Awaited<ReturnType<World['agency']>>,
) => {
  const agency = given ?? (await world.agency());
  const by = agency.tester;
  const workspaceId = testTwinIdOf(agency.workspaceId);
  const composed = await composer(world, platforms, { ...options, by });
  const set = async (to: number | null): Promise<void> => {
    const context = contextOf(world.operator, workspaceId);
    await execute(world.store, workspace, workspaceId, { type: 'SetPostingQuota', limit: to }, context);
    await world.settled();
  };
  if (limit !== null) await set(limit);
  const load = async (month: string) => (await world.store.load(quota, quotaIdOf(workspaceId, month))).state;
  const logger = createLogger('test', 'silent');
  return {
    ...{ by, workspaceId, composed, set },
    /** Ids of the targets that hold a place in the month. */
    held: async (month: string): Promise<readonly string[]> =>
      postsWithPlaces(await load(month))
        .flatMap(([, places]) => Object.keys(places))
        .sort(),
    count: async (month: string): Promise<number> => (await load(month)).held,
    placesOf: async (month: string, postId: string) => placesOf(await load(month), postId),
    /** What the sweeper does once every reservation is old. */
    sweep: async (quotas: QuotaProgress = new Map(), aheadMs = abandonMs + 1_000): Promise<void> => {
      await world.settled();
      const now = () => Date.now() + aheadMs;
      const alone = async (_id: string, work: () => Promise<void>) => work();
      await sweepQuotas({ store: world.store, pool: world.pool, now, quotas }, alone, new AbortController().signal);
    },
    logger,
    /** As a publisher and the outcomes would: the targets of the post are out at their times. */
    publish: async (postId: string, targetIds: readonly string[]): Promise<void> => {
      for (const id of targetIds) {
        const { state } = await world.store.load(target, id);
        const publishedAt = state.status === 'none' ? '' : state.common.dueAt;
        const there = { attempt: 1, takeover: 0, externalId: 'e', permalink: null, publishedAt };
        for (const step of [
          { type: 'Start', now: publishedAt },
          { type: 'RecordPublished', ...there },
        ] as const) {
          const context = contextOf(world.operator, workspaceId);
          await execute(world.store, target, id, step, context, { partitionKey: postId });
        }
        await recordOutcomes(world.store, await world.store.readStream(`target-${id}`));
      }
    },
  };
};
