import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import type { Role } from '#schemas/common.ts';
import type { PeopleDeps } from '#services/auth/people/deps.ts';
import { createTeamInvite, findTeamInvite, joinAsNew } from '#services/auth/people/team-invites.ts';
import { contextOf } from '#services/workflows/provision.ts';
import type { World } from './http.ts';

/** Persons of a world: invited, registered and members, as through the pages. */

export const goodPassword = 'correct horse battery staple';

export const peopleDepsOf = ({ store, pool, secrets, deps, logger }: World): PeopleDeps => ({
  store,
  pool,
  secrets,
  clock: deps.clock,
  logger,
});

/** A link to join the workspace. @param memberId a member without a person, whose place it gives */
export const inviteToTeam = async (
  world: World,
  ask: {
    readonly workspaceId?: string;
    readonly memberId?: string | null;
    readonly email?: string | null;
    readonly role?: Role;
    readonly lifeMs?: number;
  } = {},
) => {
  const { workspaceId = world.workspaceId, memberId = null, email = null, role = 'owner', lifeMs = 3_600_000 } = ask;
  const people = peopleDepsOf(world);
  const expiresAt = new Date(people.clock() + lifeMs).toISOString();
  const context = contextOf(world.operator, workspaceId);
  return createTeamInvite(people, { memberId, email, name: null, role, expiresAt }, context, new Map());
};

/** A person who has joined the workspace. */
export const personOf = async (
  world: World,
  ask: Parameters<typeof inviteToTeam>[1] & { readonly name?: string; readonly password?: string } = {},
) => {
  const people = peopleDepsOf(world);
  const { name = 'Ann Example', password = goodPassword, ...invite } = ask;
  const email = ask.email ?? `ann.${uuidv7()}@example.com`;
  const { token, memberId } = await inviteToTeam(world, { ...invite, email });
  const link = await findTeamInvite(people, token);
  if (link === null) throw new Error('the invitation does not work');
  const personId = await joinAsNew(people, link, { email, name, password });
  await world.settled();
  return { personId, memberId, email, password, name };
};
