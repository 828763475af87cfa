import { mayManage } from '#domain/roles.ts';
import { type Member, type WorkspaceState, workspace } from '#domain/workspace.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { noteWithdrawal } from '#runtime/identity/withdrawals.ts';
import type { Role } from '#schemas/common.ts';
import { loadPerson } from '#services/auth/people/register.ts';
import type { Call } from '../operation.ts';
import { notFound, Refusal } from '../refusal.ts';

/** The team of a workspace. Members belong to the live workspace, whichever mode a session shows. */

type CallOf = Pick<Call, 'deps' | 'principal' | 'context' | 'positions'>;

export const showMember = async ({ deps }: Pick<Call, 'deps'>, id: string, { name, role, personId }: Member) => {
  const person = personId === undefined ? null : await loadPerson(deps, personId);
  return {
    id,
    object: 'member' as const,
    name: person?.name ?? name,
    email: person?.email ?? null,
    emailProvenAt: person?.emailProvenAt ?? null,
    role,
    personId: personId ?? null,
  };
};

export const membersOf = async ({ deps, principal }: Pick<Call, 'deps' | 'principal'>) => {
  const { state } = await deps.store.load(workspace, principal.liveWorkspaceId);
  return state.status === 'none' ? {} : state.members;
};

/** @param by the role of the member who asks; null: none any more @throws Refusal 403 */
export const requireMayManage = (by: Role | null, ...touched: readonly Role[]): void => {
  const above = touched.find((role) => by === null || !mayManage(by, role));
  if (above === undefined) return;
  throw new Refusal('role_required', `Only an owner may give or take the role ${above}.`);
};

/**
 * A command about one member. Whoever changes roles meanwhile is seen: the check runs at the revision of the append, with
 * the role that the caller has there. The role of the call is that of the read models: who has just lost one could take
 * it back.
 * @throws Refusal 404, 403
 */
export const manageMember = async (
  call: CallOf,
  memberId: string,
  command: { readonly type: 'ChangeRole'; readonly role: Role } | { readonly type: 'RemoveMember' },
): Promise<Member> => {
  const { deps, principal, context, positions } = call;
  const memberOf = ({ state }: Pick<Loaded<WorkspaceState>, 'state'>): Member => {
    const found = state.status === 'none' ? undefined : state.members[memberId];
    if (found === undefined) throw notFound('member');
    return found;
  };
  let before: Member | undefined;
  const guard = (loaded: Loaded<WorkspaceState>): void => {
    before = memberOf(loaded);
    const by = loaded.state.status === 'none' ? null : (loaded.state.members[principal.memberId]?.role ?? null);
    requireMayManage(by, before.role, ...(command.type === 'ChangeRole' ? [command.role] : []));
  };
  await noteWithdrawal(deps.pool, principal.liveWorkspaceId);
  const live = { ...context, workspaceId: principal.liveWorkspaceId };
  const ofMember = { ...command, memberId };
  const done = await execute(deps.store, workspace, principal.liveWorkspaceId, ofMember, live, { guard, positions });
  return command.type === 'RemoveMember' ? (before ?? memberOf(done)) : memberOf(done);
};

export const exampleMember = {
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0102',
  object: 'member',
  name: 'Olga Owner',
  email: 'olga@agency.example',
  emailProvenAt: '2026-01-31T08:00:00.000Z',
  role: 'owner',
  personId: '3f0d6b58-6a9e-4b43-8a53-0f6f5c1a2b3d',
};

export const exampleTeamInvite = {
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0103',
  object: 'team_invite',
  memberId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0104',
  email: 'ann@agency.example',
  role: 'creator',
  createdAt: '2026-01-31T08:00:00.000Z',
  expiresAt: '2026-02-07T08:00:00.000Z',
};
