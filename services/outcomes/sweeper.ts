import type { Pool } from 'pg';
import { campaign } from '#domain/campaign.ts';
import { post } from '#domain/post/post.ts';
import { untendedPosts, walksOfWaiting } from '#projections/models/approvals.ts';
import { beforeAllCampaigns, type ShiftingCampaign, shiftingBefore } from '#projections/queries/campaign-targets.ts';
import { archivedWithOpen, disconnectedWithOpen } from '#projections/queries/disconnected-accounts.ts';
import { beforeAllPosts, type PostBehind, postsBehind } from '#projections/queries/post-queries.ts';
import { shiftRules } from '#projections/queries/posting-rules.ts';
import { type DomainStore, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { causedBy, serviceContext } from '#runtime/eventing/service-context.ts';
import type { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import { carryOutShift } from '#services/workflows/campaigns/shift.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import { noteFoundCleanUps } from './clean-ups.ts';
import { type QuotaProgress, sweepQuotas } from './quotas.ts';
import { Resting } from './resting.ts';
import { alone, type RoundDeps, runRounds, type SweptKind } from './rounds.ts';

/** Shifts of campaigns whose api crashed before it had moved every target. */

/** A shift that is younger is left to the api that decided it, milliseconds. */
const restMs = 10_000;

const finish = async (store: DomainStore, pool: Pool, id: string): Promise<void> => {
  const { state, events } = await store.load(campaign, id);
  if (state.status === 'none') return;
  for (const { eventId } of state.shifts) {
    const decided = events.find((event) => event.id === eventId);
    if (decided === undefined) continue;
    const rules = await shiftRules(pool, decided.metadata.workspaceId);
    await carryOutShift({ store, pool }, id, { decided, events }, rules);
  }
};

/** @param alone runs one campaign, so that its failure delays no other */
const finishShifts = async (
  { store, pool, now = Date.now }: { readonly store: DomainStore; readonly pool: Pool; readonly now?: () => number },
  alone: (id: string, work: () => Promise<void>) => Promise<void>,
  signal: AbortSignal,
): Promise<void> => {
  const before = new Date(now() - restMs);
  for (let after: ShiftingCampaign | undefined = beforeAllCampaigns; after !== undefined; ) {
    const campaigns: readonly ShiftingCampaign[] = await shiftingBefore(pool, before, after);
    for (const { id } of campaigns) {
      if (signal.aborted) return;
      await alone(id, () => finish(store, pool, id));
    }
    after = campaigns.at(-1);
  }
};

/** Milliseconds until the read models show every command that raced an archive or a disconnect; later ones see it. */
const raceMs = 3_600_000;

export interface SweeperDeps extends RoundDeps {
  readonly store: DomainStore;
  readonly now?: () => number;
  /** Posts, clients and accounts that failed before; the sweep passes over them. Default: none. */
  readonly resting?: Resting;
  readonly onFailure?: (kind: SweptKind) => void;
  /** Called when clean-ups may have been noted. */
  readonly wakeCleanUps?: () => void;
  /** The clocks of sandbox workspaces. Default: as the rows of the database have them. */
  readonly sandboxClocks?: SandboxClocks;
  /** What earlier sweeps settled of the quotas. Default: nothing. */
  readonly quotas?: QuotaProgress;
}

/** Applies one post's plan to its targets. False: the post has no stream. */
const applyPlan = async (store: DomainStore, id: string, now: () => number): Promise<boolean> => {
  const loaded = await store.load(post, id);
  const last = loaded.events.at(-1);
  if (last === undefined) return false;
  await fanOut(store, id, serviceContext('sweeper', causedBy(last), now()));
  return true;
};

/**
 * Sweeps once. A post, client or account that fails rests, so that it delays no other.
 * @returns how many posts it swept
 */
export const sweep = async (deps: Omit<SweeperDeps, 'config'>, signal: AbortSignal): Promise<number> => {
  const { store, pool, logger, now = Date.now, resting = new Resting(), onFailure, wakeCleanUps } = deps;
  let swept = 0;
  const each = { logger, resting, signal, onFailure };
  for (let after: PostBehind | undefined = beforeAllPosts; after !== undefined; ) {
    const posts: readonly PostBehind[] = await postsBehind(pool, after);
    for (const { id } of posts) {
      if (signal.aborted) return swept;
      await alone(each, 'post', id, async () => {
        if (await applyPlan(store, id, now)) swept += 1;
      });
    }
    after = posts.at(-1);
  }
  await finishShifts(deps, (id, work) => alone(each, 'campaign', id, work), signal);
  for (const walk of walksOfWaiting) {
    for (let after: string | null = beforeAllPosts.id; after !== null; ) {
      const page: Awaited<ReturnType<typeof untendedPosts>> = await untendedPosts(pool, walk, after);
      for (const id of page.ids) {
        if (signal.aborted) return swept;
        await alone(each, 'post', id, () => tendApprovals(store, id));
      }
      after = page.next;
    }
  }
  await sweepQuotas(deps, (id, work) => alone(each, 'workspace', id, work), signal);
  const since = new Date(now() - raceMs);
  const clients = await noteEach(pool, 'client', (after) => archivedWithOpen(pool, since, after), signal);
  const accounts = await noteEach(pool, 'account', (after) => disconnectedWithOpen(pool, since, after), signal);
  wakeCleanUps?.();
  const found = { posts: swept, clients, accounts };
  if (found.posts + found.clients + found.accounts > 0) logger.info(found, 'swept');
  return swept;
};

interface Found {
  readonly id: string;
  readonly workspaceId: string;
  readonly revision: number;
}

/** Notes a clean-up for each that a search finds, by page. @returns how many it found */
const noteEach = async (
  pool: Pool,
  kind: 'client' | 'account',
  search: (after: string) => Promise<readonly Found[]>,
  signal: AbortSignal,
): Promise<number> => {
  let found = 0;
  for (let after: string | undefined = beforeAllPosts.id; after !== undefined && !signal.aborted; ) {
    const page: readonly Found[] = await search(after);
    await noteFoundCleanUps(
      pool,
      page.map(({ id, workspaceId, revision }) => {
        const stream = `${kind}-${id}`;
        return { stream, workspaceId, revision, correlationId: uuidv7(), causationId: stream };
      }),
    );
    found += page.length;
    after = page.at(-1)?.id;
  }
  return found;
};

/**
 * Resumes work interrupted by a crash: it applies plans and intents that a post's stream has and its targets lack,
 * completes shifts of campaigns, gives back places of quotas, and notes the clean-up of clients that were archived, and
 * of accounts that were disconnected, while a post for them was being created. No caller waits for this work, so the
 * sweeper runs in the outcomes process and not in the publisher, which must publish on time.
 */
export const runSweeper = (given: SweeperDeps, signal: AbortSignal): Promise<void> => {
  const deps = { resting: new Resting(), quotas: new Map(), ...given };
  return runRounds(deps, 'posts', (stop) => sweep(deps, stop), signal);
};
