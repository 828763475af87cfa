import { workspace } from '#domain/workspace.ts';
import type { CommandContext } from '#runtime/eventing/domain-store.ts';
import type { PeopleDeps } from '#services/auth/people/deps.ts';
import { mintPersonLink } from '#services/auth/people/person-links.ts';
import { createTeamInvite } from '#services/auth/people/team-invites.ts';

/** The link by which the Owner of a new installation comes into the console. */

const dayMs = 86_400_000;

/**
 * The path of a link that works once, for a day: to choose an address and a password, or, once the Owner has done that,
 * to sign in.
 */
export const ownersLink = async (
  deps: PeopleDeps,
  owner: { readonly workspaceId: string; readonly memberId: string },
  context: CommandContext,
): Promise<string> => {
  const { state } = await deps.store.load(workspace, owner.workspaceId);
  const member = state.status === 'none' ? undefined : state.members[owner.memberId];
  if (member?.personId !== undefined) {
    const { token } = await mintPersonLink(deps, member.personId, 'sign_in');
    return `/enter/${token}`;
  }
  const expiresAt = new Date(deps.clock() + dayMs).toISOString();
  const wanted = { memberId: owner.memberId, email: null, name: null, role: 'owner', expiresAt } as const;
  const { token } = await createTeamInvite(deps, wanted, context, new Map());
  return `/join/${token}`;
};
