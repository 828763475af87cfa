import type { CredentialStore, Revoker } from '#contracts/ports/credentials.ts';
import { account } from '#domain/account.ts';
import { disconnectedWithCredentials, type KeptCredential } from '#projections/disconnected-accounts.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Platform } from '#schemas/common.ts';
import type { Resting } from './resting.ts';
import { alone, type RoundDeps, runRounds } from './rounds.ts';

/**
 * Gives back what a network gave us for an account that was disconnected: the network is asked to revoke it, then it is
 * destroyed. A network that does not answer is asked again, for a day: then the credentials are destroyed without it.
 */

export type Revokers = Readonly<Partial<Record<Platform, Revoker>>>;

export interface RevocationDeps extends RoundDeps {
  readonly credentials: CredentialStore;
  readonly store: DomainStore;
  readonly revokers: Revokers;
  /** Milliseconds since the epoch by the database's clock. */
  readonly now: () => number;
}

const pageSize = 100;
const callMs = 10_000;
const patienceMs = 86_400_000;

class Unavailable extends Error {}

/** Runs until the signal aborts. */
export const runRevocations = (deps: RevocationDeps, resting: Resting, signal: AbortSignal): Promise<void> =>
  runRounds(deps, 'revocations', (stop) => round(deps, resting, stop), signal);

const round = async (deps: RevocationDeps, resting: Resting, signal: AbortSignal): Promise<void> => {
  let after: string | null = null;
  while (!signal.aborted) {
    const page: readonly KeptCredential[] = await disconnectedWithCredentials(deps.pool, after, pageSize);
    for (const one of page) {
      if (signal.aborted) return;
      const { logger } = deps;
      await alone({ logger, resting, signal, onFailure: undefined }, 'account', one.accountId, () => revoke(deps, one));
    }
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.accountId;
  }
};

/**
 * If we die between the network's answer and the deletion, the next round revokes again, which the network answers with
 * "unknown", and deletes. A consent that came in between has another version, and stays.
 */
const revoke = async (
  { credentials, store, revokers, logger, now }: RevocationDeps,
  { accountId, platform, disconnectedAt }: KeptCredential,
): Promise<void> => {
  const credential = await credentials.read(accountId);
  const { state } = await store.load(account, accountId);
  // The read model may be behind a person who has just connected the account again.
  if (credential === null || state.status !== 'disconnected') return;
  const revoker = revokers[platform];
  const answer = await revoker?.(credential, accountId, AbortSignal.timeout(callMs));
  const isLate = disconnectedAt !== null && now() - Date.parse(disconnectedAt) > patienceMs;
  if (answer === 'unavailable' && !isLate) throw new Unavailable('the network does not answer; it is asked again');
  if (answer === 'unavailable') logger.warn({ accountId, platform }, 'credentials were destroyed without a revocation');
  faultPoint('outcomes:after-revocation');
  await credentials.destroy(accountId, credential.version);
};
