import { birthOf } from '#domain/decider.ts';
import { mayManage } from '#domain/roles.ts';
import { type TeamInviteState, teaminvite } from '#domain/teaminvite.ts';
import { type Member, type WorkspaceState, workspace } from '#domain/workspace.ts';
import { maxOpenInvites, openTeamInvites } from '#projections/models/team-invites.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { noteWithdrawal } from '#runtime/identity/withdrawals.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import type { Role } from '#schemas/common.ts';
import { IdParams } from '#schemas/http/common.ts';
import { MemberRoleChange, MemberShown, TeamInviteCreate, TeamInviteShown } from '#schemas/http/console.ts';
import { isEmail, normaliseEmail } from '#services/auth/people/emails.ts';
import { inviteMail, mayMail } from '#services/auth/people/mail.ts';
import { loadPerson } from '#services/auth/people/register.ts';
import { createTeamInvite as create } from '#services/auth/people/team-invites.ts';
import { loadWorkspace, type Operator } from '#services/workflows/provision.ts';
import { wholeList } from '../call/cursor.ts';
import { type Call, operation, type Tag } from '../call/operation.ts';
import { invalid, notFound, Refusal } from '../call/refusal.ts';

export const consoleTag: Tag = {
  place: 120,
  name: 'console',
  noun: 'API key',
  about:
    'What members do in the console: keys, the team, connected apps, sessions. These take the session of a member alone; keys and apps are refused with `first_party_only`.',
  realTime: true,
};

/** The team of a workspace. Members belong to the live workspace, whichever mode a session shows. */

type CallOf = Pick<Call, 'deps' | 'principal' | 'context' | 'positions'>;

const showMember = async ({ deps }: Pick<Call, 'deps'>, id: string, { name, role, personId }: Member) => {
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

/** Null for a member that an operator made: nobody signs in as it. */
export const personOfCall = async (call: Pick<Call, 'deps' | 'principal'>): Promise<string | null> =>
  (await membersOf(call))[call.principal.memberId]?.personId ?? null;

/** The member as the one who provisions. */
export const operatorOf = ({
  deps,
  principal,
  positions,
}: Pick<Call, 'deps' | 'principal' | 'positions'>): Operator => ({
  store: deps.store,
  pool: deps.pool,
  actor: principal.actor,
  clock: deps.clock,
  positions,
});

/** @param by the role of the member who asks; null: none any more @throws Refusal 403 */
const requireMayManage = (by: Role | null, ...touched: readonly Role[]): void => {
  const above = touched.find((role) => by === null || !mayManage(by, role));
  if (above === undefined) return;
  throw new Refusal('role_required', `Only an owner may give or take the role ${above}.`);
};

/**
 * A command about one member. The check runs at the revision of the append, with the role that the caller has
 * there, so that it sees every concurrent change of roles. The role of the call is that of the read models, which may
 * lag: with it, a member who has just lost a role could take it back.
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

const exampleMember = {
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0102',
  object: 'member',
  name: 'Olga Owner',
  email: 'olga@agency.example',
  emailProvenAt: '2026-01-31T08:00:00.000Z',
  role: 'owner',
  personId: '3f0d6b58-6a9e-4b43-8a53-0f6f5c1a2b3d',
};

const exampleTeamInvite = {
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0103',
  object: 'team_invite',
  memberId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0104',
  email: 'ann@agency.example',
  role: 'creator',
  createdAt: '2026-01-31T08:00:00.000Z',
  expiresAt: '2026-02-07T08:00:00.000Z',
};

export const changeMemberRole = operation({
  id: 'changeMemberRole',
  method: 'PUT',
  path: '/members/{id}/role',
  tag: consoleTag,
  noun: 'member',
  summary: 'Change the role of a member',
  description:
    'From the next call of their keys, apps and sessions on. Owners change every role; Managers those of creators and viewers. The last Owner stays one.',
  scope: 'agency.read',
  limited: 'refused',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  body: MemberRoleChange,
  answer: MemberShown,
  codes: [],
  example: { body: { role: 'owner' }, data: exampleMember },
  handle: async (call) => {
    const member = await manageMember(call, call.params.id, { type: 'ChangeRole', role: call.body.role });
    return { data: await showMember(call, call.params.id, member) };
  },
});

export const listMembers = operation({
  id: 'listMembers',
  method: 'GET',
  path: '/members',
  tag: consoleTag,
  noun: 'member',
  summary: 'List the members of the workspace',
  description: 'In the order in which they joined.',
  scope: 'agency.read',
  limited: 'refused',
  firstParty: true,
  idempotent: 'none',
  cost: 2,
  answer: MemberShown,
  list: true,
  codes: [],
  example: { data: exampleMember },
  handle: async (call) => {
    const members = Object.entries(await membersOf(call));
    const shown = new Map<string, Awaited<ReturnType<typeof showMember>>>();
    await inParallel(members, 8, async ([id, member]) => void shown.set(id, await showMember(call, id, member)));
    return wholeList(members.map(([id]) => shown.get(id)));
  },
});

export const removeMember = operation({
  id: 'removeMember',
  method: 'DELETE',
  path: '/members/{id}',
  tag: consoleTag,
  noun: 'member',
  summary: 'Remove a member',
  description:
    'Their keys, apps and sessions lose all power in this workspace within a second. Owners remove everybody; Managers creators and viewers. The last Owner stays. GET /members/{id}/left lists what they leave.',
  scope: 'agency.read',
  limited: 'refused',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: MemberShown,
  codes: [],
  example: { data: exampleMember },
  handle: async (call) => {
    const member = await manageMember(call, call.params.id, { type: 'RemoveMember' });
    return { data: await showMember(call, call.params.id, member) };
  },
});

const hourMs = 3_600_000;
const defaultHours = 168;

export const createTeamInvite = operation({
  id: 'createTeamInvite',
  method: 'POST',
  path: '/team-invites',
  tag: consoleTag,
  noun: 'team invite',
  summary: 'Invite a person to the team',
  description:
    'Makes a link by which one person becomes a member. The answer shows it once; where this installation sends mails, another one goes to the address as well, and proves that the address is the person’s. Owners invite to every role; Managers creators and viewers. A repeat of the call makes another link.',
  scope: 'agency.read',
  limited: 'refused',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 2,
  body: TeamInviteCreate,
  answer: TeamInviteShown,
  codes: [],
  example: {
    body: { email: 'ann@agency.example', role: 'creator' },
    data: { ...exampleTeamInvite, url: 'https://console.example/join/<token>', mailed: false },
  },
  handle: async (call) => {
    const { deps, principal, body, now, positions } = call;
    const { role, name = null, expiresInHours = defaultHours } = body;
    requireMayManage(principal.role, role);
    const email = body.email === undefined ? null : normaliseEmail(body.email);
    if (email !== null && !isEmail(email)) throw invalid('/email', 'not_allowed', 'must be an e-mail address');
    const workspaceId = principal.liveWorkspaceId;
    const open = await openTeamInvites(deps.pool, workspaceId, now);
    if (open.length >= maxOpenInvites) {
      throw invalid('', 'not_allowed', `must wait: ${maxOpenInvites} invitations are open, revoke some first`);
    }
    const expiresAt = new Date(Date.parse(now) + expiresInHours * hourMs).toISOString();
    const context = { ...call.context, workspaceId };
    const wanted = { memberId: null, email, name, role, expiresAt };
    const { inviteId, memberId, token, mailToken } = await create(deps, wanted, context, positions);
    const linkOf = (ofLink: string): string => `${deps.consoleUrl()}/join/${ofLink}`;
    const url = linkOf(token);
    const { mailer = null } = deps;
    const mailed = email !== null && mailer !== null && (await mayMail(deps, workspaceId, email));
    if (mailed) {
      const { name: workspaceName } = await loadWorkspace(operatorOf(call), workspaceId);
      // Nobody waits for the mail server: the answer has a link too. That of the mail proves the address, and nobody sees
      // it but who reads the mail.
      void mailer.send(inviteMail(email, workspaceName, linkOf(mailToken), expiresAt));
    }
    const shown = {
      id: inviteId,
      object: 'team_invite',
      memberId,
      email,
      role,
      createdAt: now,
      expiresAt,
      url,
      mailed,
    };
    return { data: shown };
  },
});

export const listTeamInvites = operation({
  id: 'listTeamInvites',
  method: 'GET',
  path: '/team-invites',
  tag: consoleTag,
  noun: 'team invite',
  summary: 'List open invitations to the team, newest first',
  scope: 'agency.read',
  limited: 'refused',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 2,
  answer: TeamInviteShown,
  list: true,
  codes: [],
  example: { data: exampleTeamInvite },
  handle: async (call) => {
    await call.behind(['workspace']);
    const { deps, principal, now } = call;
    const open = await openTeamInvites(deps.pool, principal.liveWorkspaceId, now);
    const emails = new Map<string, string | null>();
    await inParallel(open, 8, async ({ id }) => {
      const { state } = await deps.store.load(teaminvite, id);
      emails.set(id, 'email' in state ? state.email : null);
    });
    const data = open.map(({ id, memberId, role, createdAt, expiresAt }) => ({
      id,
      object: 'team_invite' as const,
      ...{ memberId, email: emails.get(id) ?? null, role, createdAt, expiresAt },
    }));
    return wholeList(data);
  },
});

export const revokeTeamInvite = operation({
  id: 'revokeTeamInvite',
  method: 'DELETE',
  path: '/team-invites/{id}',
  tag: consoleTag,
  noun: 'team invite',
  summary: 'Revoke an invitation to the team',
  description: 'The link ends. An invitation that was accepted, or has expired, is no longer there: 404.',
  scope: 'agency.read',
  limited: 'refused',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: TeamInviteShown,
  codes: [],
  example: { data: exampleTeamInvite },
  handle: async ({ deps, principal, context, params, positions }) => {
    const workspaceId = principal.liveWorkspaceId;
    const guard = ({ state, events }: Loaded<TeamInviteState>): void => {
      const isOwn = events[0]?.metadata.workspaceId === workspaceId;
      if (!isOwn || state.status === 'none' || state.status === 'accepted') throw notFound('team invite');
    };
    const live = { ...context, workspaceId };
    const revoked = await execute(deps.store, teaminvite, params.id, { type: 'Revoke' }, live, { guard, positions });
    const { state, events } = revoked;
    if (state.status === 'none' || state.status === 'accepted') throw notFound('team invite');
    const { memberId, email, role, expiresAt } = state;
    const createdAt = birthOf(teaminvite, events)?.metadata.occurredAt ?? context.now;
    return { data: { id: params.id, object: 'team_invite', memberId, email, role, createdAt, expiresAt } };
  },
});
