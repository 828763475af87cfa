import { grantableScopes, tickedScopes } from '#schemas/grant.ts';

/**
 * What an app has to know before it asks for access: which authorization server a resource trusts (RFC 9728), and the
 * challenge that names this document (RFC 6750, section 3; RFC 9728, section 5.1).
 */

export interface ProtectedResource {
  /** Address of the resource, without a slash at the end: the audience of its tokens. */
  readonly resource: string;
  readonly name: string;
  /** The issuer of access tokens. */
  readonly authUrl: string;
  readonly documentation: string;
}

const wellKnown = '/.well-known/oauth-protected-resource';

/** The path of the document: the path of the resource is appended (RFC 9728, section 3.1). */
export const metadataPathOf = (resource: string): string => {
  const { pathname } = new URL(resource);
  return `${wellKnown}${pathname === '/' ? '' : pathname}`;
};

export const metadataUrlOf = (resource: string): string => `${new URL(resource).origin}${metadataPathOf(resource)}`;

export const metadataOf = ({ resource, name, authUrl, documentation }: ProtectedResource) => ({
  resource,
  resource_name: name,
  resource_documentation: documentation,
  authorization_servers: [authUrl],
  bearer_methods_supported: ['header'],
  // Not offline_access: apps would ask for it, and every grant has a refresh token.
  scopes_supported: grantableScopes,
});

/** An app that asked for less at first could not step up later in every client. */
const firstScopes = tickedScopes.join(' ');

export interface Challenge {
  /** Null: the caller sent no token, and no error attribute is sent (RFC 6750, section 3.1). */
  readonly error: 'invalid_token' | 'insufficient_scope' | null;
  /** Default: what a new app should ask for. */
  readonly scope?: string;
}

/** The value of `WWW-Authenticate`. */
export const challengeOf = (resource: string, { error, scope = firstScopes }: Challenge): string => {
  const attributes = [`resource_metadata="${metadataUrlOf(resource)}"`, `scope="${scope}"`];
  return `Bearer ${[...(error === null ? [] : [`error="${error}"`]), ...attributes].join(', ')}`;
};
