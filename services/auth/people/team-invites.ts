import { birthOf, Rejection } from '#domain/decider.ts';
import { person } from '#domain/person.ts';
import { mayManage } from '#domain/roles.ts';
import { isOpenInvite, type TeamInviteState, teaminvite } from '#domain/teaminvite.ts';
import { type WorkspaceState, workspace } from '#domain/workspace.ts';
import { type CommandContext, type Loaded, type Positions, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { claimedIds, isGenuine, type LinkKind, linkToken } from '#runtime/identity/link-token.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Role } from '#schemas/common.ts';
import { beginAttempt, takeBackAttempt } from './attempts.ts';
import { nowOf, type PeopleDeps, personContext } from './deps.ts';
import { normaliseEmail } from './emails.ts';
import { requireProven } from './proof.ts';
import { type NewPerson, registerPerson } from './register.ts';

/** Invitations to the team: minting the link, and joining through it. */

export interface NewTeamInvite {
  /** Null: a new member. */
  readonly memberId: string | null;
  /** Null: the person with the link chooses an address. */
  readonly email: string | null;
  readonly name: string | null;
  readonly role: Role;
  readonly expiresAt: string;
}

/** @param context of the live workspace, with the actor who invites */
export const createTeamInvite = async (
  deps: PeopleDeps,
  { memberId, email, name, role, expiresAt }: NewTeamInvite,
  context: CommandContext,
  positions: Positions,
): Promise<{
  readonly inviteId: string;
  readonly memberId: string;
  readonly token: string;
  /** For the mail to the address alone: only a reader of that mail can open it. */
  readonly mailToken: string;
}> => {
  const inviteId = uuidv7();
  const keyVersion = deps.secrets.current;
  const invited = memberId ?? uuidv7();
  const command = {
    type: 'Create',
    ...{ inviteId, memberId: invited, email, name, role, now: context.now, expiresAt, keyVersion },
  } as const;
  await execute(deps.store, teaminvite, inviteId, command, context, { positions });
  const tokenOf = (kind: LinkKind): string => linkToken(deps.secrets, kind, [inviteId], keyVersion);
  return { inviteId, memberId: invited, token: tokenOf('team'), mailToken: tokenOf('team_mail') };
};

export interface OpenTeamInviteLink {
  readonly inviteId: string;
  readonly workspaceId: string;
  readonly workspaceName: string;
  /** Of the invitation as it was created, also after its acceptance. */
  readonly role: Role;
  readonly invitedBy: CommandContext['actor'];
  /** Whether it proves the address that it names: it came to it by mail, or an operator made it. */
  readonly provesEmail: boolean;
  readonly state: Exclude<TeamInviteState, { status: 'none' }>;
}

/**
 * The invitation behind a token, open or accepted; null for unknown, forged, revoked and expired ones alike. An accepted
 * one is of use only to the person who accepted it.
 */
export const findTeamInvite = async (deps: PeopleDeps, token: string): Promise<OpenTeamInviteLink | null> => {
  const ids = claimedIds(token, 1);
  const [inviteId] = ids ?? [];
  if (ids === null || inviteId === undefined) return null;
  const { state, events } = await deps.store.load(teaminvite, inviteId);
  const created = birthOf(teaminvite, events);
  const keyVersion = created?.data.keyVersion;
  if (created === undefined || typeof keyVersion !== 'string' || state.status === 'none') return null;
  const isOf = (kind: LinkKind): boolean => isGenuine(deps.secrets, kind, token, ids, keyVersion);
  const isMailed = isOf('team_mail');
  if (!isMailed && !isOf('team')) return null;
  if (state.status !== 'accepted' && !isOpenInvite(state, nowOf(deps))) return null;
  const { workspaceId, actor: invitedBy } = created.metadata;
  const { state: home } = await deps.store.load(workspace, workspaceId);
  const role = created.data.role as Role;
  if (home.status === 'none' || !mayStillInvite(home, { invitedBy, role })) return null;
  const isNamed = typeof created.data.email === 'string';
  const provesEmail = isNamed && (isMailed || invitedBy.type !== 'member');
  return { inviteId, workspaceId, workspaceName: home.name, role, invitedBy, provesEmail, state };
};

/**
 * An invitation ends with the power of the member who made it: a removed member could otherwise come back through one
 * of their own.
 */
const mayStillInvite = (
  home: WorkspaceState,
  { invitedBy, role }: Pick<OpenTeamInviteLink, 'invitedBy' | 'role'>,
): boolean => {
  if (invitedBy.type !== 'member') return true;
  const inviter = home.status === 'none' ? undefined : home.members[invitedBy.id];
  return inviter !== undefined && mayManage(inviter.role, role);
};

/** An invitation makes a member once: a removed member does not come back through the old link. */
const requireInviter = (
  { events, state }: Loaded<WorkspaceState>,
  memberId: string,
  link: OpenTeamInviteLink,
): void => {
  const wasRemoved = events.some(({ type, data }) => type === 'MemberRemoved' && data.memberId === memberId);
  if (wasRemoved || !mayStillInvite(state, link)) {
    throw new Rejection('not_found', 'There is no such invitation.');
  }
};

/**
 * The invitation takes the person.
 * @param positions notes where the events are, for a reader of the workspace
 * @throws Rejection with words for the person
 */
export const joinAs = async (
  deps: PeopleDeps,
  link: OpenTeamInviteLink,
  personId: string,
  positions: Positions = new Map(),
): Promise<void> => {
  const { inviteId, workspaceId, role, state } = link;
  const { state: registered, events } = await deps.store.load(person, personId);
  if (registered.status !== 'registered') throw new Rejection('not_found', 'There is no such person.');
  if (state.status !== 'accepted' && state.email !== null && normaliseEmail(state.email) !== registered.email) {
    throw new Rejection('validation_failed', 'This invitation is for another address: sign in with that one.');
  }
  // The registration itself joins, by the invitation under which it was made.
  if (birthOf(person, events)?.metadata.commandId !== inviteId) await requireProven(deps, personId);
  const { memberId } = state;
  const correlationId = uuidv7();
  const context: CommandContext = {
    ...personContext(deps, personId, correlationId),
    workspaceId,
    actor: { type: 'member', id: memberId },
  };
  // The name of a person is sealed in the person's own stream: here it could not be erased.
  const join = { type: 'Join', memberId, personId, name: 'Member', role } as const;
  const home = await deps.store.load(workspace, workspaceId);
  requireInviter(home, memberId, link);
  workspace.decide(join, home.state);
  // The acceptance decides against a revocation. If we die after it, the person opens the link again and joins then.
  await execute(deps.store, teaminvite, inviteId, { type: 'Accept', personId, now: context.now }, context);
  faultPoint('team-invite:after-accept');
  const guard = (loaded: Loaded<WorkspaceState>) => requireInviter(loaded, memberId, link);
  await execute(deps.store, workspace, workspaceId, join, context, { guard, positions });
  faultPoint('team-invite:after-join');
};

/**
 * A person with a link for any address could probe every address for an account, so a link answers only a few addresses.
 * A form with a mistake asks nothing.
 */
const registerAsked = async (
  deps: PeopleDeps,
  { state, inviteId, provesEmail }: OpenTeamInviteLink,
  typed: NewPerson,
): Promise<string> => {
  const wanted = { ...typed, isProven: provesEmail };
  if (state.status !== 'accepted' && state.email !== null) return registerPerson(deps, wanted, inviteId);
  const asked = { what: `join ${inviteId}`, free: 5 };
  await beginAttempt(deps.pool, asked);
  try {
    return await registerPerson(deps, wanted, inviteId);
  } catch (error) {
    if (error instanceof Rejection && error.code === 'validation_failed') await takeBackAttempt(deps.pool, asked);
    throw error;
  }
};

/** Registers the person, whose credentials are committed before the membership, then joins. */
export const joinAsNew = async (
  deps: PeopleDeps,
  link: OpenTeamInviteLink,
  wanted: NewPerson,
  positions: Positions = new Map(),
): Promise<string> => {
  const { state } = link;
  if (state.status === 'accepted') throw new Rejection('not_found', 'There is no such invitation.');
  if (state.email !== null && normaliseEmail(state.email) !== normaliseEmail(wanted.email)) {
    throw new Rejection('validation_failed', 'This invitation is for another address.');
  }
  const personId = await registerAsked(deps, link, wanted);
  await joinAs(deps, link, personId, positions);
  return personId;
};
