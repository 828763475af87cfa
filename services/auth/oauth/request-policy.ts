import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { grantableScopes, readScopes } from '#schemas/grant.ts';
import type { Resources } from './resources.ts';

/** What an authorization request may ask for, and what we make of it. */

/**
 * Parameters of OpenID Connect, which oidc-provider refuses without the scope `openid`, and of ours alone: clients that
 * send them anyway get what they would get without.
 */
const ignoredParameters = [
  ...['nonce', 'claims', 'claims_locales', 'acr_values', 'id_token_hint', 'max_age', 'login_hint', 'ui_locales'],
  '_policy',
];

/**
 * Runs before oidc-provider reads the query. Every authorization asks the person, so of `prompt` only `none` has a
 * meaning, and it always fails.
 */
export const ignoreParameters = (query: Record<string, unknown>): void => {
  for (const name of ignoredParameters) delete query[name];
  if (query.prompt !== undefined && query.prompt !== 'none') delete query.prompt;
  if (typeof query.scope !== 'string') return;
  // oidc-provider knows these two and would refuse them. Where nothing else is asked for, it shall.
  const scopes = query.scope.split(' ').filter((one) => one !== 'openid' && one !== 'offline_access');
  if (scopes.length > 0) query.scope = scopes.join(' ');
};

/** The scopes to ask the person for: those of the request that we know, or all reads where it names none. */
const scopesOf = (asked: string | undefined): string => {
  if (asked === undefined) return readScopes.join(' ');
  const named = new Set(asked.split(' '));
  const scopes = grantableScopes.filter((one) => named.has(one));
  if (scopes.length === 0) throw new errors.InvalidScope(`none of: ${grantableScopes.join(', ')}`, asked);
  return scopes.join(' ');
};

/** The one resource that these name; @throws InvalidTarget */
const onlyOne = (resources: Resources, named: unknown): string => {
  const found = new Set((Array.isArray(named) ? named : [named]).map((one) => resources.find(String(one))));
  const [resource] = found;
  if (found.size !== 1 || resource === undefined || resource === null) {
    throw new errors.InvalidTarget('the resource must be the api or the MCP server, and only one of them');
  }
  return resource;
};

/**
 * Runs once for each authorization request, after oidc-provider's own checks and before anybody is asked. It must be an
 * async function: oidc-provider takes nothing else.
 */
export const requestPolicy =
  (resources: Resources) =>
  async (ctx: KoaContextWithOIDC): Promise<void> => {
    const { params } = ctx.oidc;
    if (params === undefined) return;
    params.scope = scopesOf(params.scope as string | undefined);
    const resource = onlyOne(resources, params.resource);
    const [server] = Object.values(ctx.oidc.resourceServers ?? {});
    if (server === undefined) throw new errors.InvalidTarget();
    // The code, the grant and its tokens name the resource in one spelling, however the client wrote it.
    params.resource = resource;
    for (const name of Object.keys(ctx.oidc.resourceServers ?? {})) delete ctx.oidc.resourceServers?.[name];
    const { ResourceServer } = ctx.oidc.provider;
    Object.assign(ctx.oidc.resourceServers ?? {}, { [resource]: new ResourceServer(resource, server) });
  };

/**
 * The resource of a request at the token endpoint, before its token is spent: oidc-provider would rotate a refresh token
 * first and refuse the resource after, and the client's next try would count as reuse.
 * @throws InvalidTarget
 */
export const checkTokenResource = (
  resources: Resources,
  params: Record<string, unknown>,
  granted: ReadonlySet<string>,
): void => {
  const { resource } = params;
  const isNamed = resource !== undefined && resource !== '' && !(Array.isArray(resource) && resource.length === 0);
  const wanted = onlyOne(resources, isNamed ? resource : [...granted]);
  if (!granted.has(wanted)) throw new errors.InvalidTarget('the resource was not granted');
  if (isNamed) params.resource = wanted;
};
