import type { CredentialStore, Revoker } from '#contracts/ports/credentials.ts';
import { account } from '#domain/account.ts';
import { type KeptCredential, unusedCredentials } from '#projections/queries/disconnected-accounts.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { atMost, Slots } from '#runtime/work/slots.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { fairRound } from './fair-round.ts';
import type { Resting } from './resting.ts';
import { alone, type RoundDeps, runRounds } from './rounds.ts';

/**
 * Gives back what a network gave us for an account that was disconnected, or never came to be: the network is asked to revoke it, then it is
 * destroyed. Of accounts that one consent connected it is asked with the last alone. A network that does not answer is asked again, for a day: then the credentials are destroyed without it.
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
/** Revocations of a network under way at once, in all and for one workspace: a silent network holds no other. */
const concurrency = 8;
const share = 2;
/** Accounts of a network that a round tries at most; the next begins anew. */
const maxTried = 10_000;
const callMs = 10_000;
const patienceMs = 86_400_000;

class NetworkSilent extends Error {}

/** Runs until the signal aborts. */
export const runRevocations = async (deps: RevocationDeps, resting: Resting, signal: AbortSignal): Promise<void> => {
  const ofNetwork = (platform: Platform) =>
    runRounds(deps, `revocations ${platform}`, (stop) => round(deps, platform, resting, stop), signal);
  await Promise.all(platforms.map(ofNetwork));
};

const round = (deps: RevocationDeps, platform: Platform, resting: Resting, signal: AbortSignal): Promise<void> => {
  const each = { logger: deps.logger, resting, signal, onFailure: undefined };
  return fairRound<KeptCredential>(
    {
      read: async (tried) =>
        tried.size >= maxTried ? [] : unusedCredentials(deps.pool, platform, [...tried], pageSize),
      subjectOf: (one) => one,
      slots: new Slots(concurrency, atMost(share)),
      work: (one) => alone(each, 'account', one.accountId, () => revoke(deps, platform, one)),
    },
    signal,
  );
};

/**
 * If we die behind the leaving, nothing is left to do. If we die between the network's answer and the deletion, the next round revokes again, which the network answers with
 * "unknown", and deletes. A consent that came in between has another version, and stays.
 */
const revoke = async (
  { credentials, store, revokers, logger, now }: RevocationDeps,
  platform: Platform,
  { accountId, unusedSince }: KeptCredential,
): Promise<void> => {
  const credential = await credentials.read(accountId);
  const { state } = await store.load(account, accountId);
  // The read model may be behind a person who has just connected the account again.
  if (credential === null || (state.status !== 'disconnected' && state.status !== 'none')) return;
  // A revocation would end the accounts that stay connected by the same consent.
  if ((await credentials.leave(accountId, credential.version)) === 'left') return;
  const revoker = revokers[platform];
  const answer = await revoker?.(credential, accountId, AbortSignal.timeout(callMs));
  const isLate = now() - Date.parse(unusedSince) > patienceMs;
  if (answer === 'unavailable' && !isLate) throw new NetworkSilent('the network does not answer; it is asked again');
  if (answer === 'unavailable') logger.warn({ accountId, platform }, 'credentials were destroyed without a revocation');
  faultPoint('outcomes:after-revocation');
  await credentials.destroy(accountId, credential.version);
};
