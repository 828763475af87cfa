import type Koa from 'koa';
import type { Context } from 'koa';
import Provider, { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { grant } from '#domain/grant.ts';
import { callerAddress, noProxies } from '#runtime/identity/proxies.ts';
import { roleNow } from '../judged.ts';
import { adapterFor } from './adapter.ts';
import { cached, editMetadata, editRegistration } from './answers.ts';
import type { Clients } from './clients.ts';
import { configurationOf } from './config.ts';
import type { OAuthDeps } from './deps.ts';
import type { Documents } from './documents.ts';
import { showError } from './error-page.ts';
import type { Families } from './families.ts';
import type { KeySet } from './keys.ts';
import { authorizePath } from './paths.ts';
import type { Repeats } from './repeats.ts';
import { ignoreParameters } from './request-policy.ts';
import { Resources } from './resources.ts';

/** One oidc-provider for one set of keys: it cannot take others while it runs. */

export interface ProviderParts {
  readonly deps: OAuthDeps;
  readonly clients: Clients;
  readonly families: Families;
  readonly repeats: Repeats;
  readonly documents: Documents | null;
}

/**
 * Whether a token may still be given out for a grant. The grant is read from its stream, which shows a revocation by any
 * process at once; the member's role is that of `roleNow`.
 */
const grantCheck =
  (deps: OAuthDeps) =>
  async (grantId: string): Promise<void> => {
    const { state, events } = await deps.store.load(grant, grantId);
    const workspaceId = events[0]?.metadata.workspaceId;
    if (state.status !== 'active' || workspaceId === undefined) throw new errors.InvalidGrant('the grant was revoked');
    if (state.expiresAt <= new Date(deps.clock()).toISOString()) throw new errors.InvalidGrant('the grant has expired');
    if ((await roleNow(deps, workspaceId, state.memberId)) === null) {
      throw new errors.InvalidGrant('the member has left the workspace');
    }
  };

/** Addresses come from the configuration alone: no header of a caller gets into metadata or a redirect. */
const pinAddress = (provider: Provider, issuer: URL): void => {
  const fixed = (value: unknown): PropertyDescriptor => ({ get: () => value, configurable: true });
  Object.defineProperties(provider.request, {
    host: fixed(issuer.host),
    protocol: fixed(issuer.protocol.slice(0, -1)),
    secure: fixed(issuer.protocol === 'https:'),
  });
};

/** The revocation endpoint answers 200 whatever it is sent (spec 5), but for a fault of ours: then nothing is revoked. */
const revoked = async (ctx: KoaContextWithOIDC, families: Families): Promise<void> => {
  if (ctx.status >= 500) return;
  const { client, body, provider } = ctx.oidc;
  const token: unknown = body?.token;
  const isAnonymous = client === undefined && body?.client_id === undefined && ctx.headers.authorization === undefined;
  if (isAnonymous && typeof token === 'string') {
    // A public client has nothing but the token to prove who it is: whoever holds it may end it.
    const found = await provider.RefreshToken.find(token);
    const owner = found === undefined ? undefined : await provider.Client.find(found.clientId ?? '');
    if (found?.grantId !== undefined && owner?.clientAuthMethod === 'none') await families.end(found.grantId, 'client');
  }
  ctx.status = 200;
  ctx.remove('WWW-Authenticate');
  ctx.body = '';
};

/** A repeat gets the answer of the first use; that of a first use is kept for repeats. */
const tokenAnswered = async (
  ctx: KoaContextWithOIDC,
  repeats: Repeats,
  logger: Pick<OAuthDeps['logger'], 'warn'>,
): Promise<void> => {
  const again = repeats.answerOf(ctx);
  if (again !== null) {
    ctx.status = 200;
    ctx.type = 'application/json';
    ctx.body = again;
  } else if (ctx.status === 200 && ctx.oidc.entities.RotatedRefreshToken !== undefined) {
    await repeats.keep(ctx, JSON.stringify(ctx.body)).catch((err: unknown) => {
      // The answer itself is good: the app holds it, and a second use ends the family.
      logger.warn({ err }, 'the answer to a refresh could not be kept');
    });
  }
};

const withoutSession = (ctx: Context, name: string): void => {
  const sent = ctx.res.getHeader('Set-Cookie');
  const all = Array.isArray(sent) ? sent : sent === undefined ? [] : [String(sent)];
  const kept = all.filter((one) => !one.startsWith(`${name}=`) && !one.startsWith(`${name}.sig=`));
  if (kept.length === all.length) return;
  if (kept.length === 0) ctx.res.removeHeader('Set-Cookie');
  else ctx.res.setHeader('Set-Cookie', kept);
};

/** What stands around every answer of oidc-provider: requests that it may not have, and what its answers lack. */
const answers =
  (provider: Provider, { repeats, families, deps: { logger } }: ProviderParts): Koa.Middleware =>
  async (ctx, next) => {
    if (ctx.path === authorizePath) {
      // No row can keep it, and no app needs it.
      if (ctx.querystring.includes('%00')) {
        return showError(ctx, 400, 'invalid_request', 'The app sent a request that cannot be answered.');
      }
      ignoreParameters(ctx.query as Record<string, unknown>);
      const { response_mode: mode } = ctx.query;
      if (mode !== undefined && mode !== 'query') {
        return showError(
          ctx,
          400,
          'unsupported_response_mode',
          'The app must be answered in the query of its address.',
        );
      }
    }
    ctx.set('Referrer-Policy', 'no-referrer');
    await next();
    const { oidc } = ctx as KoaContextWithOIDC;
    withoutSession(ctx, provider.cookieName('session'));
    switch (oidc?.route) {
      case 'discovery':
        return editMetadata(ctx as KoaContextWithOIDC);
      case 'jwks':
        return cached(ctx as KoaContextWithOIDC);
      case 'registration':
      case 'client':
      case 'client_update':
        return editRegistration(ctx as KoaContextWithOIDC);
      case 'token':
        return tokenAnswered(ctx as KoaContextWithOIDC, repeats, logger);
      case 'revocation':
        return revoked(ctx as KoaContextWithOIDC, families);
    }
  };

export const makeProvider = (keys: KeySet, parts: ProviderParts): Provider => {
  const { deps, clients, families, repeats, documents } = parts;
  const { pool, secrets, logger, trustedProxies = noProxies } = deps;
  const issuer = new URL(deps.authUrl());
  const resources = new Resources(deps.baseUrl, deps.mcpUrl);
  const addressOf = (ctx: Context): string =>
    callerAddress(ctx.req.socket.remoteAddress, ctx.get('X-Forwarded-For'), trustedProxies);
  const checkGrant = grantCheck(deps);
  const hasPower = (grantId: string): Promise<boolean> =>
    checkGrant(grantId).then(
      () => true,
      (error: unknown) => {
        if (error instanceof errors.InvalidGrant) return false;
        throw error;
      },
    );
  const adapter = adapterFor({
    pool,
    clients,
    families,
    repeats,
    resumeUrl: (uid) => `${issuer.origin}${authorizePath}/${uid}`,
    address: () => (Provider.ctx === undefined ? null : addressOf(Provider.ctx)),
  });
  const isSecure = issuer.protocol === 'https:';
  const provider = new Provider(
    deps.authUrl(),
    configurationOf({
      keys,
      secrets,
      resources,
      adapter,
      isSecure,
      documents,
      addressOf,
      checkGrant,
      allowsRepeat: async (ctx, grantId) => (await hasPower(grantId)) && repeats.allows(ctx),
    }),
  );
  pinAddress(provider, issuer);

  provider.use(answers(provider, parts));

  (provider as Koa).on('error', (error: unknown) => logger.warn({ err: error }, 'an oauth answer broke'));
  provider.on('server_error', (ctx, error) => logger.error({ err: error, route: ctx.oidc.route }, 'oauth failed'));
  provider.on('grant.error', (ctx, error) => {
    if (repeats.answerOf(ctx) !== null) return;
    logger.info({ error: error.message, detail: error.error_detail, app: ctx.oidc.client?.clientId }, 'no token given');
  });
  provider.on('registration_create.success', (_ctx, client) =>
    logger.info({ app: client.clientId, name: client.clientName }, 'app registered'),
  );
  return provider;
};
