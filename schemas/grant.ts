import { Type } from 'typebox';
import type { Scope } from './apikey.ts';
import { type EventOf, Instant, Mode, Uuid } from './common.ts';

/** What a person gave an app over OAuth: some scopes in one workspace, in one mode, for one resource. */

/** Asked for where an app names no scope: all that only reads. */
export const readScopes = [
  'agency.read',
  'clients.read',
  'accounts.read',
  'posts.read',
  'analytics.read',
  'reports.read',
  'besttimes.read',
  'media.read',
] as const satisfies readonly Scope[];

/** What stands ticked on the consent page: the ten scopes of the specification, which a new app should ask for. */
export const tickedScopes = [...readScopes, 'posts.compose', 'media.manage'] as const satisfies readonly Scope[];

/** What an app asks for by name beside the ticked ones. */
const namedScopes = [
  'approvals.read',
  'approvals.decide',
  'clients.manage',
  'accounts.connect',
  'reports.manage',
  'campaigns.read',
  'campaigns.manage',
] as const satisfies readonly Scope[];

/** Every scope that a person can give an app. The rest needs an API key or a session. */
export const grantableScopes = [...tickedScopes, ...namedScopes] as const;
export type GrantableScope = (typeof grantableScopes)[number];

/** Who ended it: a person, the app, a token that was used twice, or the system because its reason is gone. */
export const grantEnders = ['person', 'client', 'reuse', 'member_removed', 'expired', 'operator'] as const;
export type GrantEnder = (typeof grantEnders)[number];

/** The id of an OAuth client, never that of a client of the agency: at most the length of a metadata document's url. */
export const OAuthClientId = Type.String({ minLength: 1, maxLength: 500 });
export const OAuthClientName = Type.String({ maxLength: 100 });

export const grantEvents = {
  GrantGiven: Type.Object({
    clientId: OAuthClientId,
    clientName: OAuthClientName,
    personId: Uuid,
    memberId: Uuid,
    mode: Mode,
    scopes: Type.Array(Type.Enum([...grantableScopes]), { minItems: 1 }),
    /** The address at which its tokens work: the api, or the MCP server. */
    resource: Type.String({ minLength: 1, maxLength: 2000 }),
    expiresAt: Instant,
  }),
  GrantRevoked: Type.Object({ by: Type.Enum([...grantEnders]) }),
} as const;

export type GrantEvent = EventOf<typeof grantEvents>;
