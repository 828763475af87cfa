import { randomUUID } from 'node:crypto';
import {
  type Adapter,
  type Configuration,
  errors,
  interactionPolicy,
  type KoaContextWithOIDC,
  type ResourceServer,
} from 'oidc-provider';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { grantableScopes } from '#schemas/grant.ts';
import { ClientFault, type ClientMetadata, normaliseClient } from './client-policy.ts';
import type { Documents } from './documents.ts';
import { showError } from './error-page.ts';
import type { KeySet } from './keys.ts';
import { authorizePath, interactionPath } from './paths.ts';
import { checkTokenResource, requestPolicy } from './request-policy.ts';
import type { Resources } from './resources.ts';
import { accessTokenSeconds, codeSeconds, grantSeconds, interactionSeconds, refreshTokenSeconds } from './times.ts';

/**
 * oidc-provider as an authorization server of OAuth 2.1. Its presets are those of OpenID Connect, so nearly each member
 * below turns one of them round.
 */

export interface ConfigParts {
  readonly keys: KeySet;
  readonly secrets: Secrets;
  readonly resources: Resources;
  readonly adapter: (model: string) => Adapter;
  /** Whether browsers reach the server over TLS. */
  readonly isSecure: boolean;
  /** Null: no client may be named by a metadata document. */
  readonly documents: Documents | null;
  readonly addressOf: (ctx: KoaContextWithOIDC) => string;
  /** Whether a refresh token that was spent already gets its answer again. */
  readonly allowsRepeat: (ctx: KoaContextWithOIDC, grantId: string) => Promise<boolean>;
  /** @throws errors.InvalidGrant where our own grant, or its member, has no power any more */
  readonly checkGrant: (grantId: string) => Promise<void>;
}

const ask = () => {
  const policy = interactionPolicy.base();
  const consent = policy.get('consent');
  if (consent === undefined) throw new Error('oidc-provider has no consent prompt');
  consent.checks.clear();
  // A public client can be impersonated by whoever knows its id, so each authorization asks the person.
  consent.checks.add(
    new interactionPolicy.Check('consent_asked', 'the person must be asked', 'consent_required', (ctx) =>
      ctx.oidc.result?.consent === undefined
        ? interactionPolicy.Check.REQUEST_PROMPT
        : interactionPolicy.Check.NO_NEED_TO_PROMPT,
    ),
  );
  return policy;
};

/** Browsers refuse a cookie with such a name without TLS, and from another host with it. */
const cookieNames = (isSecure: boolean) =>
  isSecure
    ? { session: '__Host-oauth', interaction: '__Secure-oauth_asked', resume: '__Secure-oauth_resume' }
    : { session: 'oauth', interaction: 'oauth_asked', resume: 'oauth_resume' };

const resourceServer = (resource: string): ResourceServer => ({
  scope: grantableScopes.join(' '),
  audience: resource,
  accessTokenTTL: accessTokenSeconds,
  accessTokenFormat: 'jwt',
  jwt: { sign: { alg: 'ES256' } },
});

const off = { enabled: false } as const;

/** oidc-provider sends a code to a redirect URI only, so its pages are for requests that name none it may use. */
const explain = (ctx: KoaContextWithOIDC, error: string, status: number): void => {
  const isOver = error === 'invalid_request' && ctx.oidc.route === 'resume';
  const why =
    status >= 500
      ? 'Something went wrong on our side.'
      : isOver
        ? 'This request is over, or it was begun in another browser.'
        : 'The app sent a request that cannot be answered: it is unknown here, or it asked to be answered at an address that it has not registered.';
  showError(ctx, status, error, why);
};

const featuresOf = ({ resources, documents, addressOf }: ConfigParts): Configuration['features'] => ({
  devInteractions: off,
  userinfo: off,
  rpInitiatedLogout: off,
  dPoP: off,
  pushedAuthorizationRequests: off,
  introspection: off,
  resourceIndicators: {
    enabled: true,
    defaultResource: async (_ctx, _client, oneOf) => oneOf?.[0] ?? resources.preset,
    useGrantedResource: async () => true,
    getResourceServerInfo: async (_ctx, asked) => {
      const resource = resources.find(asked);
      if (resource === null) throw new errors.InvalidTarget('there is no such resource');
      return resourceServer(resource);
    },
  },
  registration: {
    enabled: true,
    initialAccessToken: false,
    issueRegistrationAccessToken: true,
    idFactory: () => randomUUID(),
  },
  // A client whose answer was lost would be locked out by a rotation.
  registrationManagement: { enabled: true, rotateRegistrationAccessToken: false },
  revocation: {
    enabled: true,
    allowedPolicy: async (_ctx, client, token) => token.clientId === client.clientId,
  },
  ...(documents === null
    ? {}
    : {
        clientIdMetadataDocument: {
          enabled: true,
          ack: 'draft-02',
          allowFetch: async (ctx, id) => documents.mayFetch(id, addressOf(ctx)),
          allowClient: async () => true,
          cacheDuration: { min: 60, max: 86_400 },
        },
      }),
});

/**
 * With a code or a refresh token in hand, before a refresh token is spent. One that was spent already goes on to end its
 * family, unless it gets its answer again.
 */
const accountFinder =
  ({ resources, checkGrant, allowsRepeat }: ConfigParts): NonNullable<Configuration['findAccount']> =>
  async (ctx, accountId, token) => {
    if (token !== undefined && 'grantId' in token) {
      const { resourceIndicators, grantId } = token as { resourceIndicators: ReadonlySet<string>; grantId: string };
      if ('consumed' in token && token.consumed) {
        // oidc-provider stops at an unknown account, before it ends the family.
        if (token.kind === 'RefreshToken' && (await allowsRepeat(ctx, grantId))) return undefined;
        return { accountId, claims: async () => ({ sub: accountId }) };
      }
      checkTokenResource(resources, ctx.oidc.params ?? {}, resourceIndicators);
      await checkGrant(grantId);
    }
    return { accountId, claims: async () => ({ sub: accountId }) };
  };

export const configurationOf = (parts: ConfigParts): Configuration => {
  const { keys, secrets, resources, adapter, isSecure, documents } = parts;
  const cookie = { signed: true, httpOnly: true, sameSite: 'lax' } as const;
  const [first] = keys;
  if (first === undefined) throw new Error('there is no signing key');
  return {
    adapter,
    jwks: { keys },
    routes: {
      authorization: authorizePath,
      token: '/oauth/token',
      revocation: '/oauth/revoke',
      registration: '/oauth/register',
      jwks: '/.well-known/jwks.json',
      end_session: '/oauth/logout',
    },
    responseTypes: ['code'],
    scopes: [...grantableScopes],
    claims: { openid: ['sub'] },
    clientDefaults: {
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      id_token_signed_response_alg: 'ES256',
    },
    clientAuthMethods: [
      'none',
      'client_secret_basic',
      'client_secret_post',
      ...(documents === null ? [] : (['private_key_jwt'] as const)),
    ],
    enabledJWA: {
      idTokenSigningAlgValues: ['ES256'],
      clientAuthSigningAlgValues: ['ES256', 'RS256', 'PS256', 'EdDSA'],
    },
    pkce: { required: () => true },
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: async () => false,
    rotateRefreshToken: true,
    revokeGrantPolicy: () => true,
    ttl: {
      AccessToken: accessTokenSeconds,
      AuthorizationCode: codeSeconds,
      RefreshToken: refreshTokenSeconds,
      Grant: grantSeconds,
      Interaction: interactionSeconds,
      Session: interactionSeconds,
      IdToken: accessTokenSeconds,
    },
    // One grant for each authorization: with a shared one, the end of one family would end the others.
    loadExistingGrant: async (ctx) => {
      const grantId = ctx.oidc.result?.consent?.grantId;
      return grantId === undefined ? undefined : ctx.oidc.provider.Grant.find(grantId);
    },
    interactions: { policy: ask(), url: (_ctx, { uid }) => `${interactionPath}/${uid}` },
    features: featuresOf(parts),
    ...(documents === null ? {} : { fetch: (url: string | URL | Request) => documents.fetch(String(url)) }),
    fetchResponseBodyLimits: { jwks_uri: 32_768 },
    extraClientMetadata: {
      properties: ['software_id', 'software_version'],
      // The only place that may change metadata before they are checked. It is called once for each property.
      validator: (_ctx, property, _value, metadata) => {
        if (property !== 'software_id') return;
        try {
          normaliseClient(metadata as ClientMetadata);
        } catch (error) {
          if (error instanceof ClientFault) throw new errors.InvalidClientMetadata(error.message);
          throw error;
        }
      },
    },
    extraParams: { _policy: requestPolicy(resources) },
    findAccount: accountFinder(parts),
    extraTokenClaims: async (_ctx, token) => ({ gid: 'grantId' in token ? token.grantId : undefined }),
    // No cookie and no session counts at these endpoints, so an origin gains nothing by calling them.
    clientBasedCORS: () => true,
    cookies: {
      keys: secrets.versions().map((version) => secrets.subKey('oauth-cookies', version).toString('base64url')),
      names: cookieNames(isSecure),
      long: { ...cookie, path: '/' },
      short: cookie,
    },
    renderError: async (ctx, { error }) => explain(ctx, error, ctx.status),
  };
};
