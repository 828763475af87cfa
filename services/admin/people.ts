import { Rejection } from '#domain/decider.ts';
import { person } from '#domain/person.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import type { Role } from '#schemas/common.ts';
import { People } from '#services/auth/people/credentials.ts';
import { nowOf, type PeopleDeps } from '#services/auth/people/deps.ts';
import { installationId, normaliseEmail } from '#services/auth/people/emails.ts';
import { erasePerson } from '#services/auth/people/erase.ts';
import { mintPersonLink } from '#services/auth/people/person-links.ts';
import { endSecondFactor } from '#services/auth/people/security.ts';
import { createTeamInvite } from '#services/auth/people/team-invites.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type Admin, type CommandOutput, type Given, shown } from './context.ts';
import { idOf, workspaceOf, workspaceOfMember } from './find.ts';
import { roleOf } from './workspaces.ts';

/** Links that an operator delivers to people. */

const dayMs = 86_400_000;

const peopleOf = ({ store, pool, secrets, operator, logger }: Admin): PeopleDeps => ({
  ...{ store, pool, secrets, logger, clock: operator.clock },
});

const invite = async (
  admin: Admin,
  workspaceId: string,
  about: { readonly memberId: string | null; readonly email: string | null; readonly role: Role },
): Promise<CommandOutput> => {
  const people = peopleOf(admin);
  const expiresAt = new Date(people.clock() + 7 * dayMs).toISOString();
  const context = contextOf(admin.operator, workspaceId);
  const made = await createTeamInvite(people, { ...about, name: null, expiresAt }, context, admin.operator.positions);
  await shown(admin);
  const { inviteId, memberId, token } = made;
  return { workspaceId, inviteId, memberId, role: about.role, expiresAt, secret: `${admin.consoleUrl}/join/${token}` };
};

export const inviteMember = async (admin: Admin, { flag }: Given): Promise<CommandOutput> => {
  const role = roleOf(flag('role') ?? '');
  const { id } = await workspaceOf(admin, flag('workspace'));
  return invite(admin, id, { memberId: null, email: flag('email') ?? null, role });
};

/** For a member that was made for keys alone: a person takes its place, with its role and its keys. */
export const linkMember = async (admin: Admin, { at, flag }: Given): Promise<CommandOutput> => {
  const memberId = idOf(at(0), 'member');
  const { id, members } = await workspaceOfMember(admin, memberId);
  const { role } = members[memberId] ?? { role: 'viewer' };
  return invite(admin, id, { memberId, email: flag('email') ?? null, role });
};

const personOf = async (admin: Admin, email: string): Promise<string> => {
  const found = await new People(admin.pool, admin.secrets).byEmail(normaliseEmail(email));
  if (found === null) throw new Rejection('not_found', 'There is no person with this address.');
  return found.personId;
};

export const linkPerson = async (admin: Admin, { at, flag }: Given): Promise<CommandOutput> => {
  const purpose = flag('for') ?? 'reset';
  if (purpose !== 'reset' && purpose !== 'sign_in') throw new UsageError('--for is reset or sign_in.');
  const personId = await personOf(admin, at(0));
  const { token, expiresAt } = await mintPersonLink(peopleOf(admin), personId, purpose);
  const page = purpose === 'reset' ? 'reset-password' : 'enter';
  return { personId, for: purpose, expiresAt, secret: `${admin.consoleUrl}/${page}/${token}` };
};

/** The operator's word that the account, as it is now, belongs to the person who has the address: nothing of it ends. */
export const proveEmail = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const personId = await personOf(admin, at(0));
  const command = { type: 'ProveEmail', by: 'operator' } as const;
  const { state } = await execute(admin.store, person, personId, command, contextOf(admin.operator, installationId));
  return { personId, emailProvenAt: state.status === 'registered' ? state.emailProvenAt : null };
};

/** For a person who has lost the app and the recovery codes: the password alone signs in from now on. */
export const removeFactor = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const personId = await personOf(admin, at(0));
  await endSecondFactor(peopleOf(admin), personId, contextOf(admin.operator, installationId));
  return { personId, secondFactor: false };
};

export const erase = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const named = at(0);
  const personId = named.includes('@') ? await personOf(admin, named) : idOf(named, 'person');
  const { state } = await admin.store.load(person, personId);
  if (state.status === 'none') throw new Rejection('not_found', 'There is no such person.');
  const people = peopleOf(admin);
  await erasePerson({ ...people, dataKeys: admin.dataKeys }, personId, contextOf(admin.operator, personId));
  return { personId, erased: true, at: nowOf(people) };
};
