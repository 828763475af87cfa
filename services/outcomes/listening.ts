import { pause } from '#contracts/base/pause.ts';
import type { ConnectCodes } from '#contracts/ports/connect-codes.ts';
import type { CredentialStore } from '#contracts/ports/credentials.ts';
import { MissingKey } from '#contracts/ports/data-keys.ts';
import type { Hearer, HearingState, LossCheck, NetworkListener } from '#contracts/ports/network-listener.ts';
import type { PushedPosts } from '#contracts/ports/pushed-posts.ts';
import { account } from '#domain/account.ts';
import { liveAccounts, liveIds, pushedPlaces } from '#projections/queries/disconnected-accounts.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { type Cause, causedByNewest, serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import { Leases } from '#runtime/work/leases.ts';
import type { Platform } from '#schemas/common.ts';
import { lapse } from '#services/workflows/accounts/lapse.ts';
import { type RoundDeps, runRounds } from './rounds.ts';

/**
 * Listens to networks that send updates only to a listener; of all processes, the one with the lease listens. A network
 * repeats an update that was not stored, so a crash loses nothing.
 */

export interface ListeningDeps extends RoundDeps {
  readonly listeners: Readonly<Partial<Record<Platform, NetworkListener>>>;
  readonly credentials: CredentialStore;
  readonly connectCodes: Pick<ConnectCodes, 'sweep'>;
  readonly pushedPosts: Pick<PushedPosts, 'forget' | 'sweep'>;
  readonly store: DomainStore;
  /** Milliseconds since the epoch by the database's clock. */
  readonly now: () => number;
  /** Called whenever a network answers or fails to. Null: this process does not listen to it any more. */
  readonly onHearing?: (platform: Platform, state: HearingState['kind'] | null) => void;
  /** Milliseconds until a network that refused what the configuration gives is tried again. Default 300,000. */
  readonly refusedMs?: number;
}

/** Longest time between two looks at a lease that another process holds, and after a failure. Milliseconds. */
const maxStandbyMs = 2_000;
const pageSize = 100;

/** Runs until the signal aborts. */
export const runListening = async (deps: ListeningDeps, signal: AbortSignal): Promise<void> => {
  await Promise.all([
    ...Object.entries(deps.listeners).map(([platform, listener]) =>
      listenAlone(deps, platform as Platform, listener, signal),
    ),
    // Also where nobody listens any more: what was kept still ends.
    runRounds(deps, 'pushed', (stop) => sweepPushed(deps, stop), signal),
  ]);
};

const listenAlone = async (
  deps: ListeningDeps,
  platform: Platform,
  listener: NetworkListener,
  signal: AbortSignal,
): Promise<void> => {
  const { pool, config, clock, logger, onHearing, refusedMs = 300_000 } = deps;
  const standbyMs = Math.min(maxStandbyMs, config.sweepIntervalMs);
  const hearer = hearerOf(deps, platform, listener);
  const leases = new Leases({
    ...{ pool, kind: 'listen', ttlMs: config.leaseTtlMs, ...(clock === undefined ? {} : { clock }) },
    onError: (error) => logger.warn({ err: error, platform }, 'the lease of a listener could not be renewed'),
  });
  try {
    while (!signal.aborted) {
      let waitMs = standbyMs;
      try {
        const [lease] = await leases.acquire([listener.name]);
        if (lease !== undefined) {
          try {
            await listener.listen(hearer, AbortSignal.any([signal, lease.signal]));
            if (!lease.signal.aborted) waitMs = refusedMs;
          } finally {
            onHearing?.(platform, null);
            lease.release();
          }
        }
      } catch (error) {
        logger.warn({ err: error, platform }, 'an update of a network could not be stored; the network repeats it');
      }
      await pause(waitMs, signal);
    }
  } finally {
    await leases.close();
  }
};

const hearerOf = (deps: ListeningDeps, platform: Platform, listener: NetworkListener): Hearer => {
  const { pool, logger, onHearing } = deps;
  let last: HearingState['kind'] | null = null;
  return {
    connected: (externalIds) => liveIds(pool, platform, externalIds),
    changed: (externalId, check) => recordLoss(deps, listener, { platform, externalId }, check),
    state(state) {
      onHearing?.(platform, state.kind);
      if (state.kind === last) return;
      last = state.kind;
      if (state.kind === 'hearing') logger.info({ platform }, 'the network tells what happens');
      else if (state.kind === 'unavailable') logger.warn({ platform, reason: state.reason }, words[state.kind]);
      else logger.error({ platform, reason: state.reason }, words[state.kind]);
    },
  };
};

const words = {
  unavailable: 'the network cannot be listened to now; it is asked again',
  conflict: 'another listener or a webhook has taken what the network tells: end it, one installation a bot',
  refused: 'the network refuses the configured token: no update arrives until it is replaced',
} as const;

interface Connected {
  readonly id: string;
  readonly revision: number;
  readonly cause: Cause;
}

/**
 * The network is asked before the accounts are read, because most changes cost nothing, and again after that, so that a
 * consent in between wins. If we die between two accounts, the network tells it again, and a repeat yields no event.
 */
const recordLoss = async (
  deps: ListeningDeps,
  listener: NetworkListener,
  place: { readonly platform: Platform; readonly externalId: string },
  check: LossCheck,
): Promise<boolean> => {
  const { pool, store, now, logger } = deps;
  const before = await check();
  if (before === undefined) return false;
  if (before === null) return true;
  const connected: Connected[] = [];
  for (let after: string | null = null; ; ) {
    const page: Awaited<ReturnType<typeof liveAccounts>> = await liveAccounts(pool, place, after, pageSize);
    for (const { id, workspaceId } of page) {
      const one = await connectedNow(deps, listener, id, workspaceId);
      if (one !== null) connected.push(one);
    }
    after = page.at(-1)?.id ?? null;
    if (page.length < pageSize) break;
  }
  if (connected.length === 0) return true;
  const reason = await check();
  if (reason === undefined) return false;
  if (reason === null) return true;
  for (const { id, revision, cause } of connected) {
    try {
      await lapse(store, id, reason, serviceContext('listener', cause, now()), revision);
      faultPoint('outcomes:after-loss');
    } catch (error) {
      if (isInfrastructureFault(error)) throw error;
      logger.error(
        { err: error, accountId: id },
        'the loss of an account could not be recorded; its next post finds it',
      );
    }
  }
  return true;
};

/** Null: the account does not depend on the updates of this listener. */
const connectedNow = async (
  { store, credentials, logger }: ListeningDeps,
  listener: NetworkListener,
  id: string,
  workspaceId: string,
): Promise<Connected | null> => {
  const { state, events, revision } = await store.load(account, id);
  if (state.status !== 'connected') return null;
  try {
    const credential = await credentials.read(id);
    if (credential === null || !listener.concerns(credential)) return null;
  } catch (error) {
    if (!(error instanceof MissingKey)) throw error;
    // A key of one client that fails must not keep updates from all others.
    logger.error({ err: error, accountId: id }, 'a credential cannot be opened; its account is passed over');
    return null;
  }
  return { id, revision, cause: causedByNewest(events, workspaceId, id) };
};

/** Ends codes that ran out, posts that are too old, and those of places that nobody has connected any more. */
const sweepPushed = async ({ pool, connectCodes, pushedPosts }: ListeningDeps, signal: AbortSignal): Promise<void> => {
  await connectCodes.sweep();
  await pushedPosts.sweep();
  for (let after: string | null = null; !signal.aborted; ) {
    const page: Awaited<ReturnType<typeof pushedPlaces>> = await pushedPlaces(pool, 'telegram', after, pageSize);
    const left = page.flatMap(({ place, isLeft }) => (isLeft ? [place] : []));
    if (left.length > 0) await pushedPosts.forget(left);
    after = page.at(-1)?.place ?? null;
    if (page.length < pageSize) return;
  }
};
