import type { Context, Middleware } from 'koa';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Deps } from '../deps.ts';
import { bodyCost } from '../heavy-bodies.ts';
import { defaultBodyLimit } from '../json.ts';
import { isSearchable, type Operation, searchCost } from '../operation.ts';
import { Refusal } from '../refusal.ts';
import { operationOf, stateOf } from '../state.ts';

/**
 * Owners that are remembered, of each kind. The owner whose last request is the oldest is forgotten first, so that no
 * number of addresses fills the memory.
 */
const maxOwners = 50_000;

/**
 * What each owner may spend, counted in this process: `burst` requests in each window, and windows as long as the rate
 * needs to give them back (600 a minute with a burst of 100: 100 in 10 s).
 */
export class Allowance {
  readonly #limiter: RateLimiterMemory;
  /** What a fresh window has. */
  readonly burst: number;
  readonly #seconds: number;
  readonly #maxOwners: number;
  /** Owners that spent something, the latest last. */
  readonly #owners = new Set<string>();

  constructor({ perMinute, burst }: Deps['rate'], most = maxOwners) {
    this.burst = burst;
    this.#seconds = (burst * 60) / perMinute;
    this.#maxOwners = most;
    this.#limiter = new RateLimiterMemory({ points: burst, duration: this.#seconds });
  }

  /** @throws Refusal 429 when less is left, and takes nothing then. */
  async spend(ctx: Context, owner: string, requests: number): Promise<void> {
    await this.#remember(owner);
    try {
      this.#tell(ctx, await this.#limiter.consume(owner, requests));
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused;
      this.#tell(ctx, await this.#limiter.reward(owner, requests));
      const seconds = Math.max(1, Math.ceil(refused.msBeforeNext / 1000));
      throw new Refusal('rate_limited', `Wait ${seconds} s.`, { headers: { 'Retry-After': String(seconds) } });
    }
  }

  /** May take more than is left: later requests then wait as many windows longer as it takes to give that back. */
  async owe(ctx: Context, owner: string, requests: number): Promise<void> {
    await this.#remember(owner);
    const spent = await this.#limiter.penalty(owner, requests);
    const debt = Math.min(requests, spent.consumedPoints - this.burst);
    const seconds = spent.msBeforeNext / 1000 + (debt / this.burst) * this.#seconds;
    this.#tell(ctx, debt <= 0 ? spent : await this.#limiter.block(owner, seconds));
  }

  async hasLeft(owner: string): Promise<boolean> {
    return ((await this.#limiter.get(owner))?.consumedPoints ?? 0) < this.burst;
  }

  /** Shows an allowance that this answer does not touch. */
  async show(ctx: Context, owner: string): Promise<void> {
    this.#tell(ctx, await this.#limiter.get(owner));
  }

  async #remember(owner: string): Promise<void> {
    this.#owners.delete(owner);
    this.#owners.add(owner);
    const [oldest] = this.#owners;
    if (this.#owners.size <= this.#maxOwners || oldest === undefined) return;
    this.#owners.delete(oldest);
    await this.#limiter.delete(oldest);
  }

  #tell(ctx: Context, left: RateLimiterRes | null): void {
    const seconds = Math.max(0, Math.ceil((left?.msBeforeNext ?? 0) / 1000));
    ctx.set('RateLimit-Policy', `"default";q=${this.burst};w=${Math.ceil(this.#seconds)}`);
    ctx.set('RateLimit', `"default";r=${Math.max(0, left?.remainingPoints ?? this.burst)};t=${seconds}`);
  }
}

/**
 * Four allowances of the same size, kept apart: a stranger who guesses tokens, or loads pages, spends nothing of a
 * credential's allowance, and guessing does not block the pages for the same address.
 */
export class Allowances {
  /** Of credentials. */
  readonly credentials: Allowance;
  /** Of addresses, for tokens that open nothing. */
  readonly guesses: Allowance;
  /** Of addresses, for what needs no token: the invite page, the contract, the catalogue. */
  readonly pages: Allowance;
  /** Of addresses, for presigned URLs of files: a page that shows many leaves its address the other allowances. */
  readonly files: Allowance;

  constructor(rate: Deps['rate']) {
    this.credentials = new Allowance(rate);
    this.guesses = new Allowance(rate);
    this.pages = new Allowance(rate);
    this.files = new Allowance(rate);
  }

  /** The allowance that a request counts against, and its owner there; known after authentication. */
  of(ctx: Context): readonly [allowance: Allowance, owner: string] {
    const { principal, address } = stateOf(ctx);
    if (principal !== null) return [this.credentials, `${principal.kind}:${principal.id}`];
    return [this.pages, address];
  }

  /** @throws Refusal 429 */
  async spend(ctx: Context, requests: number): Promise<void> {
    const [allowance, owner] = this.of(ctx);
    await allowance.spend(ctx, owner, requests);
  }

  async owe(ctx: Context, requests: number): Promise<void> {
    const [allowance, owner] = this.of(ctx);
    await allowance.owe(ctx, owner, requests);
  }
}

/** What the body counts for as far as the caller says how long it is: no more than the largest that would be read. */
const announced = (ctx: Context, { body, bodyLimit = defaultBodyLimit }: Operation): number =>
  body === undefined ? 0 : bodyCost({ bytes: Math.min(bodyLimit, ctx.request.length ?? 0), values: 0 });

export const rateLimit =
  (allowances: Allowances): Middleware =>
  async (ctx, next) => {
    const operation = operationOf(ctx);
    const searches = isSearchable(operation) && new URLSearchParams(ctx.querystring).has('search');
    const cost = searches ? searchCost : operation.cost;
    // NOTE: in advance, since a hundred large bodies at once would all be read before the first of them is counted. No more
    // than half a window: who uses some of every window could never send a large one else. The rest is debt.
    const ahead = Math.min(announced(ctx, operation), Math.floor(allowances.credentials.burst / 2));
    await allowances.spend(ctx, cost + ahead);
    stateOf(ctx).paidAhead = ahead;
    await next();
  };

/** Every answer shows an allowance, also one that was refused before any was touched. */
export const showAllowance =
  (allowances: Allowances): Middleware =>
  async (ctx, next) => {
    await next();
    if (ctx.res.getHeader('RateLimit') !== undefined) return;
    const [allowance, owner] = allowances.of(ctx);
    await allowance.show(ctx, owner);
  };
