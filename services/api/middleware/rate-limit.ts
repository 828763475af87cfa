import type { Context, Middleware } from 'koa';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Deps } from '../deps.ts';
import { Refusal } from '../refusal.ts';
import { operationOf, stateOf } from '../state.ts';

/**
 * The allowance of a credential, counted in this process: `burst` requests in each window, and windows as long as the
 * rate needs to give them back (600 a minute with a burst of 100: 100 in 10 s). Without a credential the address counts.
 */
export class Allowance {
  readonly #limiter: RateLimiterMemory;
  readonly #burst: number;
  readonly #seconds: number;

  constructor({ perMinute, burst }: Deps['rate']) {
    this.#burst = burst;
    this.#seconds = (burst * 60) / perMinute;
    this.#limiter = new RateLimiterMemory({ points: burst, duration: this.#seconds });
  }

  /** @throws Refusal 429 when nothing is left. */
  async spend(ctx: Context, owner: string, requests: number): Promise<void> {
    try {
      this.#tell(ctx, await this.#limiter.consume(owner, requests));
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused;
      this.#tell(ctx, refused);
      const seconds = Math.max(1, Math.ceil(refused.msBeforeNext / 1000));
      throw new Refusal('rate_limited', `Wait ${seconds} s.`, { headers: { 'Retry-After': String(seconds) } });
    }
  }

  /** Takes more than is left where it must: what comes next waits longer. */
  async owe(owner: string, requests: number): Promise<void> {
    await this.#limiter.penalty(owner, requests);
  }

  /** Shows an allowance that this answer does not touch. */
  async show(ctx: Context, owner: string): Promise<void> {
    this.#tell(ctx, await this.#limiter.get(owner));
  }

  #tell(ctx: Context, left: RateLimiterRes | null): void {
    const seconds = Math.max(0, Math.ceil((left?.msBeforeNext ?? 0) / 1000));
    ctx.set('RateLimit-Policy', `"default";q=${this.#burst};w=${Math.ceil(this.#seconds)}`);
    ctx.set('RateLimit', `"default";r=${Math.max(0, left?.remainingPoints ?? this.#burst)};t=${seconds}`);
  }
}

/** Whose allowance a request counts against. */
export const ownerOf = (ctx: Context): string => {
  const { principal } = stateOf(ctx);
  return principal === null ? `address:${ctx.req.socket.remoteAddress ?? ''}` : `${principal.kind}:${principal.id}`;
};

export const rateLimit =
  (allowance: Allowance): Middleware =>
  async (ctx, next) => {
    await allowance.spend(ctx, ownerOf(ctx), operationOf(ctx).cost);
    await next();
  };

/** Every answer shows the allowance, also one that was refused before it was touched. */
export const showAllowance =
  (allowance: Allowance): Middleware =>
  async (ctx, next) => {
    await next();
    if (ctx.res.getHeader('RateLimit') === undefined) await allowance.show(ctx, ownerOf(ctx));
  };
