import { type InviteCommand, invite } from '#domain/invite.ts';
import { connectable } from '#domain/platforms/index.ts';
import { rowOf } from '#projections/engine/model.ts';
import { invites } from '#projections/models/invites.ts';
import { IdParams } from '#schemas/http/common.ts';
import { ConnectInvite, ConnectInviteCreate } from '#schemas/http/invite.ts';
import { defaultMaxAccounts } from '#schemas/invite.ts';
import { requireUnarchived } from '../clients.ts';
import { exampleInvite } from '../examples.ts';
import { showConnectInvite } from '../invites/show.ts';
import { liveNetworksOf } from '../live-networks.ts';
import { operation } from '../operation.ts';
import { Refusal } from '../refusal.ts';
import { writtenRow } from '../rows.ts';

const hourMs = 3_600_000;

export const createConnectInvite = operation({
  id: 'createConnectInvite',
  method: 'POST',
  path: '/clients/{id}/connect-invites',
  tag: 'clients',
  summary: 'Create a link that connects accounts to a client',
  description:
    'Anyone with the link may connect accounts of its platforms until it expires: at most `maxAccounts` different accounts, each as often as needed. It works while its maker may connect accounts: not after they were removed, or have another role; the end of the key that made it changes nothing. The page behind it offers those networks that can be connected here when a person opens it; a live link to none is refused.',
  scope: 'accounts.connect',
  idempotent: 'required',
  cost: 1,
  params: IdParams,
  body: ConnectInviteCreate,
  answer: ConnectInvite,
  codes: ['client_archived', 'platform_not_available'],
  example: { body: { platforms: ['bluesky', 'threads'], expiresInHours: 48 }, data: exampleInvite },
  handle: async (call) => {
    const { deps, principal, body, params, now } = call;
    const created = await call.stream(invite).create({
      command: async (): Promise<InviteCommand> => {
        await requireUnarchived(call, params.id);
        if (connectable(principal.mode, body.platforms, liveNetworksOf(deps)).length === 0) {
          throw new Refusal(
            'platform_not_available',
            'This installation connects live accounts of none of these networks.',
          );
        }
        return {
          type: 'Create',
          clientId: params.id,
          platforms: body.platforms,
          expiresAt: new Date(Date.parse(now) + body.expiresInHours * hourMs).toISOString(),
          keyVersion: deps.secrets.current,
          recipientEmail: body.recipientEmail ?? null,
          maxAccounts: body.maxAccounts ?? defaultMaxAccounts,
        };
      },
    });
    const { id } = writtenRow(rowOf(invites, created.events));
    return { data: showConnectInvite(call, created, id, true), replayed: created.replayed };
  },
});
