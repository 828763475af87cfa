import { birthOf } from '#domain/decider.ts';
import { type TeamInviteState, teaminvite } from '#domain/teaminvite.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { IdParams } from '#schemas/http/common.ts';
import { TeamInviteShown } from '#schemas/http/console.ts';
import { exampleTeamInvite } from '../console/team.ts';
import { operation } from '../operation.ts';
import { notFound } from '../refusal.ts';

export const revokeTeamInvite = operation({
  id: 'revokeTeamInvite',
  method: 'DELETE',
  path: '/team-invites/{id}',
  tag: 'console',
  noun: 'team invite',
  summary: 'Revoke an invitation to the team',
  description: 'The link ends. An invitation that was accepted, or has expired, is no longer there: 404.',
  scope: 'agency.read',
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
