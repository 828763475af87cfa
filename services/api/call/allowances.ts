import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { bodyCost } from './bodies.ts';
import type { Deps } from './deps.ts';
import { defaultBodyLimit } from './json.ts';
import {
  asksPast,
  type CalledState,
  type CallState,
  isSearchable,
  type Operation,
  pastCost,
  searchCostOf,
} from './operation.ts';
import { Refusal } from './refusal.ts';
import type { LimitHeaders, Wire } from './wire.ts';

/**
 * The most owners that one allowance remembers. It forgets the owner with the oldest last request first, so that no
 * number of addresses fills the memory.
 */
const maxOwners = 50_000;

/**
 * The requests that each owner may spend, counted in this process: `burst` requests in each window. A window is as long
 * as the rate takes to give them back (600 a minute with a burst of 100: 100 in 10 s).
 */
export class Allowance {
  readonly #limiter: RateLimiterMemory;
  /** Requests in a fresh window. */
  readonly burst: number;
  readonly #seconds: number;
  /** Owners that spent something. */
  readonly #owners: BoundedMap<string, true>;

  constructor({ perMinute, burst }: Deps['rate'], most = maxOwners) {
    this.burst = burst;
    this.#seconds = (burst * 60) / perMinute;
    this.#limiter = new RateLimiterMemory({ points: burst, duration: this.#seconds });
    this.#owners = new BoundedMap(most, { onForget: (owner) => void this.#limiter.delete(owner) });
  }

  /** @throws Refusal 429 when the owner has fewer requests left; then the owner loses none. */
  async spend(limitHeaders: LimitHeaders, owner: string, requests: number): Promise<void> {
    this.#owners.set(owner, true);
    try {
      this.#tell(limitHeaders, await this.#limiter.consume(owner, requests));
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused;
      this.#tell(limitHeaders, await this.#limiter.reward(owner, requests));
      const seconds = Math.max(1, Math.ceil(refused.msBeforeNext / 1000));
      throw new Refusal('rate_limited', `Wait ${seconds} s.`, { headers: { 'Retry-After': String(seconds) } });
    }
  }

  /** May take more than the owner has left. Later requests then wait for as many more windows as give the debt back. */
  async owe(limitHeaders: LimitHeaders, owner: string, requests: number): Promise<void> {
    this.#owners.set(owner, true);
    const spent = await this.#limiter.penalty(owner, requests);
    const debt = Math.min(requests, spent.consumedPoints - this.burst);
    const seconds = spent.msBeforeNext / 1000 + (debt / this.burst) * this.#seconds;
    this.#tell(limitHeaders, debt <= 0 ? spent : await this.#limiter.block(owner, seconds));
  }

  /** Gives back what was spent on a request that another allowance refused. */
  async giveBack(limitHeaders: LimitHeaders, owner: string, requests: number): Promise<void> {
    this.#tell(limitHeaders, await this.#limiter.reward(owner, requests));
  }

  async hasLeft(owner: string): Promise<boolean> {
    return ((await this.#limiter.get(owner))?.consumedPoints ?? 0) < this.burst;
  }

  /** Shows an allowance that this answer does not touch. */
  async show(limitHeaders: LimitHeaders, owner: string): Promise<void> {
    this.#tell(limitHeaders, await this.#limiter.get(owner));
  }

  #tell(limitHeaders: LimitHeaders, left: RateLimiterRes | null): void {
    const seconds = Math.max(0, Math.ceil((left?.msBeforeNext ?? 0) / 1000));
    limitHeaders.set('RateLimit-Policy', `"default";q=${this.burst};w=${Math.ceil(this.#seconds)}`);
    limitHeaders.set('RateLimit', `"default";r=${Math.max(0, left?.remainingPoints ?? this.burst)};t=${seconds}`);
  }
}

type Caller = Pick<CallState, 'principal' | 'address'>;

/** What one caller may spend. */
export interface Purse {
  /** @throws Refusal 429 when fewer requests are left; then the caller loses none */
  spend(limitHeaders: LimitHeaders, requests: number): Promise<void>;
  /** May take more than is left. */
  owe(limitHeaders: LimitHeaders, requests: number): Promise<void>;
  show(limitHeaders: LimitHeaders): Promise<void>;
}

/** Credentials' worth of requests that all keys and apps of a workspace may make together, and all its sessions, where no setting says another. */
export const defaultWorkspaceKeys = 5;

const noHeaders: LimitHeaders = { set: () => undefined };

/**
 * Allowances of the same size, kept apart: a stranger who guesses tokens, or loads pages, spends nothing of a
 * credential's allowance, and guessing does not block the pages for the same address.
 */
export class Allowances {
  /** Of credentials. */
  readonly credentials: Allowance;
  /**
   * Of live workspaces: a workspace may have many keys, and each session and app is a credential too. Its programs have
   * one, and its people another: a person who comes to revoke a key that uses up everything must have requests left.
   */
  readonly workspaces: Allowance;
  /** Of addresses, for tokens that are not valid. */
  readonly guesses: Allowance;
  /** Of addresses, for paths that need no token: the invite page, the contract, the catalogue. */
  readonly pages: Allowance;
  /**
   * Of addresses, for presigned URLs of files: a page that shows many files does not spend the other allowances of its
   * address.
   */
  readonly files: Allowance;

  constructor(rate: Deps['rate']) {
    const { perMinute, burst, workspaceKeys = defaultWorkspaceKeys } = rate;
    this.credentials = new Allowance(rate);
    this.workspaces = new Allowance({ perMinute: perMinute * workspaceKeys, burst: burst * workspaceKeys });
    this.guesses = new Allowance(rate);
    this.pages = new Allowance(rate);
    this.files = new Allowance(rate);
  }

  /** What a request counts against; known after authentication. */
  of({ principal, address }: Caller): Purse {
    const { pages } = this;
    if (principal !== null) {
      const { kind, id, liveWorkspaceId } = principal;
      return this.#ofCredential(`${kind}:${id}`, kind === 'session' ? `people of ${liveWorkspaceId}` : liveWorkspaceId);
    }
    return {
      spend: (limitHeaders, requests) => pages.spend(limitHeaders, address, requests),
      owe: (limitHeaders, requests) => pages.owe(limitHeaders, address, requests),
      show: (limitHeaders) => pages.show(limitHeaders, address),
    };
  }

  /** The answer shows the allowance of the credential, and that of the workspace where it refuses. */
  #ofCredential(credential: string, together: string): Purse {
    const { credentials, workspaces } = this;
    return {
      spend: async (limitHeaders, requests) => {
        await credentials.spend(limitHeaders, credential, requests);
        try {
          await workspaces.spend(noHeaders, together, requests);
        } catch (refused) {
          await credentials.giveBack(noHeaders, credential, requests);
          await workspaces.show(limitHeaders, together);
          throw refused;
        }
      },
      owe: async (limitHeaders, requests) => {
        // The debt of one credential does not keep the others of its workspace waiting: it repays more than a window alone.
        await workspaces.owe(noHeaders, together, Math.min(requests, credentials.burst));
        await credentials.owe(limitHeaders, credential, requests);
      },
      show: (limitHeaders) => credentials.show(limitHeaders, credential),
    };
  }
}

/** Cost of the body by its announced length, at most the cost of the largest body that is read. */
const announced = ({ body, bodyLimit = defaultBodyLimit }: PricedBody, bytes: number): number =>
  body === undefined ? 0 : bodyCost({ bytes: Math.min(bodyLimit, bytes), values: 0 });

type PricedBody = Pick<Operation, 'body' | 'bodyLimit'>;

/** The requests that a call counts for before its body is read. */
export const costOf = (
  { credentials }: Allowances,
  operation: PricedBody & Pick<Operation, 'cost' | 'searchCost'>,
  { searches, past = false, bytes }: { readonly searches: boolean; readonly past?: boolean; readonly bytes: number },
): { readonly own: number; readonly ahead: number } => {
  // NOTE: a large body is counted before it is read, because a hundred at once would all be read before the first of
  // them is counted. At most half a window is counted ahead, because otherwise a caller that spends part of every
  // window could never send a large body. The rest is debt.
  const ahead = Math.min(announced(operation, bytes), Math.floor(credentials.burst / 2));
  const own = searches ? searchCostOf(operation) : operation.cost;
  return { own: past ? Math.max(own, pastCost) : own, ahead };
};

/** Step of a call: what it costs, as far as that is known before its body is read. @throws Refusal 429 */
export const spend = async (
  state: CalledState,
  wire: Pick<Wire, 'announcedBytes' | 'hasParameter' | 'paid' | 'limitHeaders'>,
  { allowances }: { readonly allowances: Allowances },
): Promise<void> => {
  const { operation } = state;
  const { paid, limitHeaders } = wire;
  const searches = isSearchable(operation) && wire.hasParameter('search');
  const { own, ahead } = costOf(allowances, operation, {
    searches,
    past: asksPast(operation, wire),
    bytes: wire.announcedBytes,
  });
  if (own + ahead > paid) await allowances.of(state).spend(limitHeaders, own + ahead - paid);
  // A caller that has paid for a body paid for all of it.
  state.paidAhead = Math.max(ahead, paid - own);
};
