import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import { post } from '#domain/post.ts';
import { archivedWithOpen } from '#projections/archived-clients.ts';
import { beforeAllPosts, type PostBehind, postsBehind } from '#projections/posts-behind.ts';
import { type DomainStore, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { causedBy, serviceContext } from '#runtime/eventing/service-context.ts';
import type { Clock } from '#runtime/postgres/database-clock.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { Leases } from '#runtime/work/leases.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { cleanUpArchived } from './archived.ts';
import { Resting } from './resting.ts';

/**
 * Resumes work interrupted by a crash: plans and intents that are in a post's stream and not yet on its targets, and
 * clients archived while a post for them was under way. It runs in the process of the outcomes, since no caller waits for
 * either, and not in the publisher's, whose thread has times to keep.
 */

/** A command that raced the archive is in the read models long before this, milliseconds: later ones see the archive. */
const raceMs = 3_600_000;

export interface SweeperDeps {
  readonly store: DomainStore;
  readonly pool: Pool;
  readonly config: { readonly sweepIntervalMs: number; readonly leaseTtlMs: number };
  readonly logger: Logger;
  readonly now?: () => number;
  readonly clock?: Pick<Clock, 'fault'>;
  /** What failed before and is passed over. Default: nothing is. */
  readonly resting?: Resting;
  readonly onFailure?: (kind: SweptKind) => void;
}

export type SweptKind = 'post' | 'client';

/** Carries out what one post's stream says. False when there is no such stream. */
const carryOut = async (store: DomainStore, id: string, now: () => number): Promise<boolean> => {
  const loaded = await store.load(post, id);
  const last = loaded.events.at(-1);
  if (last === undefined) return false;
  await fanOut(store, id, serviceContext('sweeper', causedBy(last), now()));
  return true;
};

/**
 * Applies once whatever is found now. Answers how many posts it looked at. A post or client that fails is counted, rests
 * and is passed over, so that it holds up no other. @throws where a part of the installation is unavailable: then all
 * that follows would fail the same way, and would rest for nothing. Two sweeps in a row that end at the same one let it
 * rest as well
 */
export const sweep = async (deps: Omit<SweeperDeps, 'config'>, signal: AbortSignal): Promise<number> => {
  const { store, pool, logger, now = Date.now, resting = new Resting(), onFailure } = deps;
  let looked = 0;
  const alone = async (kind: SweptKind, id: string, work: () => Promise<void>): Promise<void> => {
    if (resting.has(id)) return;
    try {
      await work();
      resting.succeeded(id);
    } catch (error) {
      const isUnavailable = isInfrastructureFault(error);
      if (signal.aborted || (isUnavailable && !resting.endsAgain(id))) throw error;
      onFailure?.(kind);
      logger.error({ err: error, [kind]: id, restMs: resting.failed(id) }, 'the sweep passes over what failed');
      if (isUnavailable) throw error;
    }
  };
  for (let after: PostBehind | undefined = beforeAllPosts; after !== undefined; ) {
    const posts: readonly PostBehind[] = await postsBehind(pool, after);
    for (const { id } of posts) {
      if (signal.aborted) return looked;
      await alone('post', id, async () => {
        if (await carryOut(store, id, now)) looked += 1;
      });
    }
    after = posts.at(-1);
  }
  const archived = await archivedWithOpen(pool, new Date(now() - raceMs));
  for (const { id, workspaceId } of archived) {
    if (signal.aborted) return looked;
    const cause = { correlationId: uuidv7(), causationId: `client-${id}` };
    await alone('client', id, () => cleanUpArchived(store, pool, { clientId: id, workspaceId, ...cause }, now));
  }
  if (looked + archived.length > 0) logger.info({ posts: looked, clients: archived.length }, 'swept');
  return looked;
};

/** Sweeps at every interval while the signal lives; of several processes one does. */
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
            // Half of the interval, so that other processes' clocks do not make it sweep for each of them.
            lease.release({ notBeforeMs: config.sweepIntervalMs / 2 });
          }
        }
      } catch (error) {
        logger.warn({ err: error }, 'a sweep failed; the next one begins anew');
      }
      await delay(config.sweepIntervalMs, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    await leases.close();
  }
};
