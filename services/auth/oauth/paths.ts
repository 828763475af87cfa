/**
 * The only paths that reach oidc-provider, exactly as written here: its router ignores case and a slash at the end, and
 * serves paths of OpenID Connect.
 */

export type RouteName =
  | 'metadata'
  | 'keys'
  | 'register'
  | 'registration'
  | 'authorize'
  | 'resume'
  | 'interaction'
  | 'token'
  | 'revoke';

interface Route {
  readonly name: RouteName;
  readonly path: RegExp;
  readonly methods: readonly string[];
}

export const authorizePath = '/oauth/authorize';
export const interactionPath = '/oauth/interaction';

const routes: readonly Route[] = [
  { name: 'metadata', path: /^\/\.well-known\/oauth-authorization-server$/, methods: ['GET', 'HEAD', 'OPTIONS'] },
  { name: 'keys', path: /^\/\.well-known\/jwks\.json$/, methods: ['GET', 'HEAD', 'OPTIONS'] },
  { name: 'register', path: /^\/oauth\/register$/, methods: ['POST', 'OPTIONS'] },
  { name: 'registration', path: /^\/oauth\/register\/[\w-]{1,64}$/, methods: ['GET', 'PUT', 'DELETE', 'OPTIONS'] },
  { name: 'authorize', path: /^\/oauth\/authorize$/, methods: ['GET'] },
  { name: 'resume', path: /^\/oauth\/authorize\/[\w-]{1,64}$/, methods: ['GET'] },
  { name: 'interaction', path: /^\/oauth\/interaction\/[\w-]{1,64}$/, methods: ['GET'] },
  { name: 'token', path: /^\/oauth\/token$/, methods: ['POST', 'OPTIONS'] },
  { name: 'revoke', path: /^\/oauth\/revoke$/, methods: ['POST', 'OPTIONS'] },
];

/** The route of a request. @param target of its first line: with a query, and for a proxy a whole url, which is none */
export const routeOf = (method: string, target: string): RouteName | null => {
  const query = target.indexOf('?');
  const path = query < 0 ? target : target.slice(0, query);
  if (path.length > 200) return null;
  return routes.find((one) => one.path.test(path) && one.methods.includes(method))?.name ?? null;
};
