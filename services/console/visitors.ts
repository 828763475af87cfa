import type { Context } from 'koa';
import type { Membership } from '#projections/models/workspaces.ts';
import type { Mode } from '#schemas/common.ts';
import type { Principal } from '#services/api/call/operation.ts';
import { sessionPrincipal } from '#services/api/callers/bearer-tokens.ts';
import { membershipsNow } from '#services/auth/judged.ts';
import { loadPerson } from '#services/auth/people/register.ts';
import { findSession, type PersonSession } from '#services/auth/people/sessions.ts';
import { readCookie } from './cookies.ts';
import type { Console, MemberVisitor, Visitor } from './deps.ts';

/**
 * Who asks for a page. Each request reads the session and the memberships again, so that a session that was ended, and a
 * member who was removed, see nothing at their next request.
 */

const principalOf = ({ id }: PersonSession, { workspaceId, memberId, role }: Membership, mode: Mode): Principal =>
  sessionPrincipal({ id, memberId, role, mode, liveWorkspaceId: workspaceId });

export const visitorOf = async (it: Console, ctx: Context): Promise<Visitor | null> => {
  const { deps } = it;
  const secret = readCookie(it, ctx, 'session');
  const session = secret === null ? null : await findSession(deps, secret);
  if (session === null) return null;
  const { personId } = session;
  const [person, memberships] = await Promise.all([loadPerson(deps, personId), membershipsNow(deps, personId)]);
  if (person === null) return null;
  const chosen = memberships.find(({ workspaceId }) => workspaceId === session.workspaceId);
  const membership = chosen ?? memberships[0] ?? null;
  const { name, email, emailProvenAt } = person;
  const who = { session, personId, name: name ?? '', email: email ?? '', isProven: emailProvenAt !== null };
  return { ...who, memberships, membership };
};

/** The power of the visitor in that mode of their workspace. */
export const principalIn = ({ session, membership }: MemberVisitor, mode: Mode): Principal =>
  principalOf(session, membership, mode);

/** Null: a member of no workspace. */
export const memberOf = (visitor: Visitor): MemberVisitor | null => {
  const { session, membership } = visitor;
  if (membership === null) return null;
  const principal = principalOf(session, membership, session.mode);
  return { ...visitor, membership, principal, livePrincipal: principalOf(session, membership, 'live') };
};
