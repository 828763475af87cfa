import type { KoaContextWithOIDC } from 'oidc-provider';
import { grantableScopes } from '#schemas/grant.ts';

/** What we change in oidc-provider's answers. */

type Body = Record<string, unknown>;

const isBody = (value: unknown): value is Body =>
  typeof value === 'object' && value !== null && !Buffer.isBuffer(value);

/** Seconds for which others may keep the metadata and the keys: much less than a new key waits before it signs. */
const cacheSeconds = 60;

export const cached = (ctx: KoaContextWithOIDC): void => {
  if (ctx.status === 200) ctx.set('Cache-Control', `public, max-age=${cacheSeconds}`);
};

/** Members of OpenID Connect: a client that sees them expects an id token. */
const ofOpenId = [
  ...['claims_parameter_supported', 'claims_supported', 'claim_types_supported', 'subject_types_supported'],
  ...['id_token_signing_alg_values_supported', 'request_uri_parameter_supported', 'request_parameter_supported'],
  ...['acr_values_supported'],
];

export const editMetadata = (ctx: KoaContextWithOIDC): void => {
  if (!isBody(ctx.body)) return;
  const metadata = ctx.body as Body;
  for (const name of ofOpenId) delete metadata[name];
  metadata.scopes_supported = [...grantableScopes];
  metadata.response_modes_supported = ['query'];
  metadata.revocation_endpoint_auth_methods_supported = metadata.token_endpoint_auth_methods_supported;
  cached(ctx);
};

const ofRegistration = ['id_token_signed_response_alg', 'require_auth_time', 'subject_type', 'response_modes'];

export const editRegistration = (ctx: KoaContextWithOIDC): void => {
  if (!isBody(ctx.body)) return;
  for (const name of ofRegistration) delete (ctx.body as Body)[name];
};
