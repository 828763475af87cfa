import { type Scope, scopes } from '#schemas/apikey.ts';
import type { Role } from '#schemas/common.ts';

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
