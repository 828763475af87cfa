import { type Scope, scopes } from '#schemas/apikey.ts';
import { type Role, roles } from '#schemas/common.ts';

/**
 * The scopes that a role may have at most. A key may use its own scopes that its member's role also has at the time of
 * the call.
 */

/** Scopes of spec 4 that only read; `events.read` is beyond the spec and the Owner's alone. */
const reading = scopes.filter((scope) => scope.endsWith('.read') && scope !== 'events.read');

const ceilings: Readonly<Record<Role, readonly Scope[]>> = {
  owner: scopes,
  manager: scopes.filter((scope) => scope !== 'events.read'),
  creator: [...reading, 'posts.compose', 'media.manage'],
  viewer: reading,
};

export const roleAllows = (role: Role, scope: Scope): boolean => ceilings[role].includes(scope);
export const scopesOf = (role: Role): readonly Scope[] => ceilings[role];

/** Whether a role may do at least what another may. */
export const isAtLeast = (role: Role, least: Role): boolean => roles.indexOf(role) <= roles.indexOf(least);

/**
 * Whether a member may give and take a role: Owners all, Managers those of creators and viewers, so that nobody makes a
 * member who may do more than they.
 */
export const mayManage = (by: Role, role: Role): boolean =>
  by === 'owner' || (by === 'manager' && isAtLeast('creator', role));
