import { pause } from '#contracts/base/pause.ts';
import type { CredentialStore, EndingCredential, Refreshed, Refresher } from '#contracts/ports/credentials.ts';
import { account } from '#domain/account.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { causedByNewest, serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import { atMost, Slots } from '#runtime/work/slots.ts';
import type { Platform } from '#schemas/common.ts';
import { lapse } from '#services/workflows/accounts/lapse.ts';
import { fairRound } from './fair-round.ts';
import { type RoundDeps, runRounds } from './rounds.ts';

const hourMs = 3_600_000;

/** Starts that are spread evenly over each hour, so that a budget of calls is never spent in a burst. */
export class HourlyPace {
  readonly #gapMs: number;
  readonly #now: () => number;
  #nextAt = Number.NEGATIVE_INFINITY;

  /** @param now monotonic, milliseconds */
  constructor(perHour: number, now: () => number = () => performance.now()) {
    if (!(perHour > 0)) throw new RangeError('a pace is a number of starts per hour above 0');
    this.#gapMs = hourMs / perHour;
    this.#now = now;
  }

  /** Takes the next place. @returns milliseconds until it begins */
  take(): number {
    const now = this.#now();
    const at = Math.max(now, this.#nextAt);
    this.#nextAt = at + this.#gapMs;
    return at - now;
  }
}

type Refreshers = Readonly<Partial<Record<Platform, Refresher>>>;

interface WatchRules {
  /** How long before its end a credential is refreshed. Less than half of what the network gives it. */
  readonly windowMs: number;
  /** Refreshes per hour that the app may ask for; they are spread over the hour. */
  readonly perHour: number;
  /** Refreshes under way at once, in all and for one workspace. */
  readonly concurrency: number;
  readonly share: number;
}

export const usualRules: WatchRules = { windowMs: 600_000, perHour: 3_600, concurrency: 8, share: 2 };

export interface CredentialWatchDeps extends RoundDeps {
  readonly credentials: CredentialStore;
  readonly store: DomainStore;
  readonly refreshers: Refreshers;
  readonly rules?: Partial<Record<Platform, Partial<WatchRules>>>;
  /** Milliseconds since the epoch by the database's clock. */
  readonly now: () => number;
  /** Called for each refresh that ended. */
  readonly onRefresh?: (platform: Platform, ended: Refreshed['kind'] | 'failed') => void;
}

/** Ending credentials that are read at a time: memory and the age of what was read stay bounded. */
const pageSize = 500;

interface Network {
  readonly platform: Platform;
  readonly refresher: NonNullable<Refreshers[Platform]>;
  readonly rules: WatchRules;
  /** Lasts from round to round: a new round may not spend the budget again. */
  readonly pace: HourlyPace;
}

/**
 * Refreshes network credentials ahead of their end, so that a post which is due does not wait for it. A network that is
 * slow or down delays no other: each has rounds of its own, and one process at a time runs them, so that the budget of
 * an installation's app is kept however many processes there are.
 *
 * Runs until the signal aborts and every refresh under way has ended.
 */
export const watchCredentials = async (deps: CredentialWatchDeps, signal: AbortSignal): Promise<void> => {
  const networks = Object.entries(deps.refreshers).map(([platform, refresher]): Network => {
    const rules = { ...usualRules, ...deps.rules?.[platform as Platform] };
    return { platform: platform as Platform, refresher, rules, pace: new HourlyPace(rules.perHour) };
  });
  await Promise.all(
    networks.map((network) =>
      runRounds(deps, `credentials ${network.platform}`, (stop) => refreshEnding(deps, network, stop), signal),
    ),
  );
};

/** A round: every credential of the network that ends within the window is tried once. */
const refreshEnding = (deps: CredentialWatchDeps, network: Network, signal: AbortSignal): Promise<void> => {
  const { platform, rules, pace } = network;
  /** Those that were tried and still end soon: they would hide others behind a full page. */
  let stuck = 0;
  const read = async (tried: ReadonlySet<string>): Promise<readonly EndingCredential[]> => {
    const before = new Date(deps.now() + rules.windowMs).toISOString();
    for (;;) {
      const limit = pageSize + stuck;
      const page = await deps.credentials.ending(platform, before, limit);
      const untried = page.filter(({ owner }) => !tried.has(owner.accountId));
      stuck = page.length - untried.length;
      if (untried.length > 0 || page.length < limit) return untried;
    }
  };
  const slots = new Slots(rules.concurrency, atMost(rules.share));
  const work = (one: EndingCredential) => refreshOne(deps, network, one, signal);
  return fairRound(
    { read, subjectOf: ({ owner }) => owner, slots, pause: () => pause(pace.take(), signal), work },
    signal,
  );
};

/** @throws what delays every later one the same way: the round then ends, and the next one begins anew */
const refreshOne = async (
  deps: CredentialWatchDeps,
  { platform, refresher }: Network,
  { owner, version }: EndingCredential,
  signal: AbortSignal,
): Promise<void> => {
  const { credentials, logger, onRefresh } = deps;
  const { accountId } = owner;
  try {
    const ended = await credentials.refresh(
      accountId,
      version,
      (former, until) => refresher(former, until, owner),
      signal,
    );
    onRefresh?.(platform, ended.kind);
    if (ended.kind === 'unavailable') {
      logger.info({ accountId, platform, reason: ended.reason }, 'a credential could not be refreshed; retrying later');
    }
    if (ended.kind === 'lapsed') await recordLapse(deps, owner, ended);
  } catch (error) {
    onRefresh?.(platform, 'failed');
    if (isInfrastructureFault(error)) throw error;
    logger.error({ err: error, accountId, platform }, 'the refresh of a credential failed; the next round tries again');
  }
};

/**
 * Records the lapse in the account's stream, then that it is recorded. If we die in between, the next round finds the
 * credential again, and the repeat yields no event.
 */
const recordLapse = async (
  { credentials, store, now }: CredentialWatchDeps,
  { accountId, workspaceId }: EndingCredential['owner'],
  { version, reason }: Extract<Refreshed, { kind: 'lapsed' }>,
): Promise<void> => {
  faultPoint('outcomes:before-lapse');
  const { events, revision } = await store.load(account, accountId);
  // A consent keeps its credential before its event: one that this read does not show came after `revision`.
  const latest = await credentials.read(accountId);
  if (latest?.version !== version) return;
  const context = serviceContext('credentials', causedByNewest(events, workspaceId, accountId), now());
  await lapse(store, accountId, reason, context, revision);
  faultPoint('outcomes:after-lapse');
  await credentials.acknowledgeLapse(accountId, version);
};
