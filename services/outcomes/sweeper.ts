import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import { post } from '#domain/post.ts';
import { archivedWithOpen } from '#projections/archived-clients.ts';
import { disconnectedWithOpen } from '#projections/disconnected-accounts.ts';
import { beforeAllPosts, type PostBehind, postsBehind } from '#projections/posts-behind.ts';
import { type DomainStore, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { causedBy, serviceContext } from '#runtime/eventing/service-context.ts';
import type { Clock } from '#runtime/postgres/database-clock.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { Leases } from '#runtime/work/leases.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { cleanUpArchived } from './archived.ts';
import { cleanUpDisconnected } from './disconnected.ts';
import { Resting } from './resting.ts';

/**
 * Resumes work interrupted by a crash: it applies plans and intents that a post's stream has and its targets lack, and
 * cleans up clients that were archived, and accounts that were disconnected, while a post for them was being created. No caller waits for this work, so the
 * sweeper runs in the outcomes process and not in the publisher, which must publish on time.
 */

/** Milliseconds until the read models show every command that raced an archive or a disconnect; later ones see it. */
const raceMs = 3_600_000;

export interface SweeperDeps {
  readonly store: DomainStore;
  readonly pool: Pool;
  readonly config: { readonly sweepIntervalMs: number; readonly leaseTtlMs: number };
  readonly logger: Logger;
  readonly now?: () => number;
  readonly clock?: Pick<Clock, 'fault'>;
  /** Posts, clients and accounts that failed before; the sweep passes over them. Default: none. */
  readonly resting?: Resting;
  readonly onFailure?: (kind: SweptKind) => void;
}

export type SweptKind = 'post' | 'client' | 'account';

/** Applies one post's plan to its targets. False: the post has no stream. */
const applyPlan = async (store: DomainStore, id: string, now: () => number): Promise<boolean> => {
  const loaded = await store.load(post, id);
  const last = loaded.events.at(-1);
  if (last === undefined) return false;
  await fanOut(store, id, serviceContext('sweeper', causedBy(last), now()));
  return true;
};

/**
 * Sweeps once. A post, client or account that fails is counted and rests, so that it delays no other. If a dependency stops two
 * sweeps in a row at the same subject, that subject rests as well.
 * @returns how many posts it swept
 * @throws when a dependency is unavailable, because every later post would fail the same way and rest without need
 */
export const sweep = async (deps: Omit<SweeperDeps, 'config'>, signal: AbortSignal): Promise<number> => {
  const { store, pool, logger, now = Date.now, resting = new Resting(), onFailure } = deps;
  let swept = 0;
  const alone = async (kind: SweptKind, id: string, work: () => Promise<void>): Promise<void> => {
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
  for (let after: PostBehind | undefined = beforeAllPosts; after !== undefined; ) {
    const posts: readonly PostBehind[] = await postsBehind(pool, after);
    for (const { id } of posts) {
      if (signal.aborted) return swept;
      await alone('post', id, async () => {
        if (await applyPlan(store, id, now)) swept += 1;
      });
    }
    after = posts.at(-1);
  }
  const since = new Date(now() - raceMs);
  const archived = await archivedWithOpen(pool, since);
  for (const { id, workspaceId } of archived) {
    if (signal.aborted) return swept;
    const cause = { correlationId: uuidv7(), causationId: `client-${id}` };
    await alone('client', id, () => cleanUpArchived(store, pool, { clientId: id, workspaceId, ...cause }, now));
  }
  const disconnected = await disconnectedWithOpen(pool, since);
  for (const { id, workspaceId, revision } of disconnected) {
    if (signal.aborted) return swept;
    const cause = { correlationId: uuidv7(), causationId: `account-${id}` };
    const subject = { accountId: id, revision, workspaceId, ...cause };
    await alone('account', id, () => cleanUpDisconnected(store, pool, subject, now));
  }
  const found = { posts: swept, clients: archived.length, accounts: disconnected.length };
  if (found.posts + found.clients + found.accounts > 0) logger.info(found, 'swept');
  return swept;
};

/** Sweeps at every interval until the signal aborts; of several processes, only the one with the lease sweeps. */
export const runSweeper = async (given: SweeperDeps, signal: AbortSignal): Promise<void> => {
  const deps = { resting: new Resting(), ...given };
  const { pool, config, logger, clock } = deps;
  const leases = new Leases({
    pool,
    kind: 'sweep',
    ttlMs: config.leaseTtlMs,
    ...(clock === undefined ? {} : { clock }),
    onError: (error) => logger.warn({ err: error }, 'the lease of the sweeper could not be renewed'),
  });
  try {
    while (!signal.aborted) {
      try {
        const [lease] = await leases.acquire(['posts']);
        if (lease !== undefined) {
          try {
            await sweep(deps, AbortSignal.any([signal, lease.signal]));
          } finally {
            // The lease rests for half of the interval, or each process would sweep once per interval.
            lease.release({ notBeforeMs: config.sweepIntervalMs / 2 });
          }
        }
      } catch (error) {
        logger.warn({ err: error }, 'a sweep failed; the next one starts from the beginning');
      }
      await delay(config.sweepIntervalMs, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    await leases.close();
  }
};
