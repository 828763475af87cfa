import type { Context, Middleware } from 'koa';
import type Provider from 'oidc-provider';
import type { EgressGuard } from '#runtime/egress/guard.ts';
import { callerAddress, noProxies } from '#runtime/identity/proxies.ts';
import { Counter, type Registry } from '#runtime/process/metrics.ts';
import { isHost } from '../hosts.ts';
import { Clients } from './clients.ts';
import type { OAuthDeps } from './deps.ts';
import { type DocumentOptions, Documents } from './documents.ts';
import { Families } from './families.ts';
import { type KeySet, SigningKeys } from './keys.ts';
import { Quota, type Rate, type RegistrationRates, Registrations } from './limits.ts';
import { type RouteName, routeOf } from './paths.ts';
import { Repeats } from './repeats.ts';

/**
 * The authorization server as a part of the api's server: it answers its own paths on its own host, and leaves all other
 * requests to the next.
 */

export interface OAuthOptions {
  /** Judges the addresses of metadata documents. Null: clients have to register. */
  readonly egress: ((deps: OAuthDeps) => EgressGuard) | null;
  readonly documents?: DocumentOptions;
  /** How many apps may register. */
  readonly registrations?: RegistrationRates;
  /** Milliseconds for which a process keeps the signing keys. Default a minute. */
  readonly keysKeptMs?: number;
  /** Where it counts reuses of spent tokens. */
  readonly registry?: Registry;
}

const maxRegistrationBytes = 32_768;
const maxFormBytes = 16_384;

/** An answer of ours in the form that OAuth clients read. */
const refuse = (ctx: Context, status: number, error: string, error_description: string, after = 0): void => {
  ctx.status = status;
  ctx.set('Access-Control-Allow-Origin', '*');
  if (after > 0) ctx.set('Retry-After', String(after));
  ctx.type = 'application/json';
  ctx.body = JSON.stringify({ error, error_description });
};

/** oidc-provider answers no preflight for registrations, which pages in browsers send too. */
const allowRegistrationFromPages = (ctx: Context): void => {
  ctx.set('Access-Control-Allow-Origin', '*');
  ctx.set('Access-Control-Expose-Headers', 'WWW-Authenticate');
};

const preflight = (ctx: Context): void => {
  ctx.set('Access-Control-Allow-Methods', 'POST, GET, PUT, DELETE');
  ctx.set('Access-Control-Allow-Headers', 'Authorization, Content-Type, MCP-Protocol-Version');
  ctx.set('Access-Control-Max-Age', '3600');
  ctx.status = 204;
};

class Limits {
  readonly #registrations: Registrations;
  readonly #others: ReadonlyMap<RouteName, Quota>;

  constructor(rate: Rate, { registrations }: OAuthOptions) {
    this.#registrations = new Registrations(registrations);
    // Each has its own: an app that guesses tokens does not keep the person at the same address from consenting.
    const limited: readonly RouteName[] = ['registration', 'authorize', 'interaction', 'resume', 'token', 'revoke'];
    this.#others = new Map(limited.map((name) => [name, new Quota(rate)]));
  }

  /** Seconds to wait; 0 = the request may go on. */
  take(route: RouteName, address: string): number {
    if (route === 'register') return this.#registrations.take(address);
    return this.#others.get(route)?.take(address) ?? 0;
  }
}

interface Built {
  readonly keys: KeySet;
  readonly issuer: string;
  readonly provider: Provider;
  readonly answer: ReturnType<Provider['callback']>;
}

/** oidc-provider is loaded with the first request: a process that nobody asks saves its memory. */
class Server {
  readonly #deps: OAuthDeps;
  readonly #keys: SigningKeys;
  readonly #parts: {
    readonly clients: Clients;
    readonly families: Families;
    readonly repeats: Repeats;
    readonly documents: Documents | null;
  };
  #built: Built | null = null;

  constructor(deps: OAuthDeps, options: OAuthOptions) {
    this.#deps = deps;
    const { pool, secrets, logger } = deps;
    this.#keys = new SigningKeys(pool, secrets, options.keysKeptMs);
    const reuses = new Counter({
      name: 'oauth_reuses_total',
      help: 'Grants that ended because a code or a refresh token was spent twice',
      registers: options.registry === undefined ? [] : [options.registry],
    });
    const families = new Families(deps, (grantId) => {
      reuses.inc();
      logger.warn({ grantId }, 'a code or refresh token was spent twice: its grant has ended');
    });
    const repeated = new Counter({
      name: 'oauth_repeats_total',
      help: 'Refresh tokens that got the answer of their first use again, within ten seconds of it',
      registers: options.registry === undefined ? [] : [options.registry],
    });
    const guard = options.egress?.(deps) ?? null;
    const documents = guard === null ? null : new Documents(guard, options.documents);
    this.#parts = {
      clients: new Clients(pool, secrets),
      families,
      repeats: new Repeats(pool, logger, () => repeated.inc()),
      documents,
    };
  }

  async provider(): Promise<Built> {
    const keys = await this.#keys.current();
    const { makeProvider } = await import('./provider.ts');
    const issuer = this.#deps.authUrl();
    if (this.#built !== null && this.#built.keys === keys && this.#built.issuer === issuer) return this.#built;
    const provider = makeProvider(keys, { deps: this.#deps, ...this.#parts });
    this.#built = { keys, issuer, provider, answer: provider.callback() };
    return this.#built;
  }
}

const requestIsTooLong = (ctx: Context, route: RouteName): boolean => {
  const limit = route === 'register' || route === 'registration' ? maxRegistrationBytes : maxFormBytes;
  return (ctx.request.length ?? 0) > limit;
};

export const oauthPart =
  (options: OAuthOptions) =>
  ({ deps }: { readonly deps: OAuthDeps }): Middleware => {
    const limits = new Limits(deps.rate, options);
    const server = new Server(deps, options);
    const { trustedProxies = noProxies } = deps;
    return async (ctx, next) => {
      const route = routeOf(ctx.method, ctx.req.url ?? '');
      if (route === null) return next();
      if (!isHost(ctx.req.headers.host, deps.authUrl())) {
        return refuse(ctx, 421, 'invalid_request', 'The authorization server has another host.');
      }
      if (route === 'register' || route === 'registration') {
        allowRegistrationFromPages(ctx);
        if (ctx.method === 'OPTIONS') return preflight(ctx);
      }
      const isRevocation = route === 'revoke' && ctx.method === 'POST';
      const address = callerAddress(ctx.req.socket.remoteAddress, ctx.get('X-Forwarded-For'), trustedProxies);
      const wait = ctx.method === 'OPTIONS' ? 0 : limits.take(route, address);
      // To a revocation 200 would be a lie, and RFC 7009 has 503 for it: the token still stands.
      if (wait > 0) return refuse(ctx, isRevocation ? 503 : 429, 'temporarily_unavailable', `Wait ${wait} s.`, wait);
      if (requestIsTooLong(ctx, route)) {
        ctx.set('Connection', 'close');
        if (!isRevocation) return refuse(ctx, 413, 'invalid_request', 'The body is too long.');
        ctx.status = 200;
        ctx.body = '';
        return;
      }
      const { provider, answer } = await server.provider();
      if (route === 'interaction') {
        const { interact } = await import('./interaction.ts');
        return interact(ctx, provider, deps);
      }
      ctx.respond = false;
      await answer(ctx.req, ctx.res);
    };
  };
