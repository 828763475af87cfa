import { teaminvite } from '#domain/teaminvite.ts';
import { openTeamInvites } from '#projections/models/team-invites.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import { TeamInviteShown } from '#schemas/http/console.ts';
import { exampleTeamInvite } from '../console/team.ts';
import { wholeList } from '../cursor.ts';
import { operation } from '../operation.ts';

export const listTeamInvites = operation({
  id: 'listTeamInvites',
  method: 'GET',
  path: '/team-invites',
  tag: 'console',
  noun: 'team invite',
  summary: 'List open invitations to the team, newest first',
  scope: 'agency.read',
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
