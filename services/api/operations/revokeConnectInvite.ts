import { type InviteState, invite } from '#domain/invite.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { ConnectInvite, ConnectInviteParams } from '#schemas/http/invite.ts';
import { exampleInvite } from '../examples.ts';
import { showConnectInvite } from '../invites/show.ts';
import { operation } from '../operation.ts';
import { notFound } from '../refusal.ts';

export const revokeConnectInvite = operation({
  id: 'revokeConnectInvite',
  method: 'DELETE',
  path: '/clients/{id}/connect-invites/{inviteId}',
  tag: 'clients',
  summary: 'Revoke a link that connects accounts',
  description:
    'Nobody connects an account through it any more; accounts that were connected stay. Revoking it again answers the same.',
  scope: 'accounts.connect',
  idempotent: 'none',
  cost: 1,
  params: ConnectInviteParams,
  answer: ConnectInvite,
  codes: [],
  example: { data: { ...exampleInvite, url: null, token: null, isRevoked: true } },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const { id, inviteId } = call.params;
    const guard = ({ state, events }: Loaded<InviteState>): void => {
      const isOwn = events[0]?.metadata.workspaceId === workspaceId;
      if (!isOwn || state.status === 'none' || state.clientId !== id) throw notFound('connect invite');
    };
    const { context, positions } = call;
    const command = { type: 'Revoke', reason: null } as const;
    const revoked = await execute(deps.store, invite, inviteId, command, context, { guard, positions });
    return { data: showConnectInvite(call, revoked, inviteId, false), revision: revoked.revision };
  },
});
