import { isAtLeast, roleAllows } from '#domain/roles.ts';
import { roles } from '#schemas/common.ts';
import { grantableScopes } from '#schemas/grant.ts';
import { Refusal } from './refusal.ts';
import type { CalledState } from './state.ts';

/**
 * Steps of a call: what a principal may do at all. Each throws a Refusal 403; a call of an operation without a scope
 * passes.
 */

type Asking = Pick<CalledState, 'operation' | 'principal'>;

/** The scope of the credential. */
export const requireScope = ({ operation: { scope }, principal }: Asking): void => {
  if (scope === null || principal?.scopes.includes(scope) === true) return;
  const never = principal?.kind === 'oauth' && !grantableScopes.some((one) => one === scope);
  const detail = never ? ', which no app can be given: use an API key or a session' : '';
  throw new Refusal('insufficient_scope', `This operation needs the scope ${scope}${detail}.`);
};

/** The role of the member behind the credential: the ceiling of the role, then the rules of the operation. */
export const requireRole = ({ operation: { scope, role, firstParty }, principal }: Asking): void => {
  if (principal === null || scope === null) return;
  if (!roleAllows(principal.role, scope)) {
    throw new Refusal('role_required', `The role ${principal.role} does not carry ${scope}.`);
  }
  if (role !== undefined && !isAtLeast(principal.role, role)) {
    const above = roles.slice(0, roles.indexOf(role) + 1).join(' or ');
    throw new Refusal('role_required', `Only a member with the role ${above} may do this.`);
  }
  if (firstParty === true && principal.kind !== 'session') {
    throw new Refusal('first_party_only', 'Only the console may do this, with the session of a member.');
  }
};

/** Refuses what concerns the whole workspace to a credential that is limited to clients. */
export const requireOpenToLimited = ({ operation: { limited }, principal }: Asking): void => {
  if (principal !== null && principal.clientIds !== null && limited === 'refused') {
    throw new Refusal('client_limited', 'This concerns the whole workspace, and the credential is limited to clients.');
  }
};
