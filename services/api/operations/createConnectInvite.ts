import { client } from '#domain/client.ts';
import { type InviteCommand, invite } from '#domain/invite.ts';
import { invites } from '#projections/invites.ts';
import { rowOf } from '#projections/model.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Invite, InviteCreate } from '#schemas/http/invite.ts';
import { defaultMaxAccounts } from '#schemas/invite.ts';
import { exampleInvite } from '../examples.ts';
import { inviteToken } from '../invite-token.ts';
import { type Call, operation } from '../operation.ts';
import { Refusal } from '../refusal.ts';
import { ownStream, writtenRow } from '../rows.ts';

/** Longer than most operations: what it promises and the two ways of its answer, with the token and without. */

const hourMs = 3_600_000;

export const createConnectInvite = operation({
  id: 'createConnectInvite',
  method: 'POST',
  path: '/clients/{id}/connect-invites',
  tag: 'client',
  summary: 'Create a link that connects accounts to a client',
  description:
    'Anyone with the link may connect accounts of its platforms until it expires: at most `maxAccounts` different accounts, each as often as needed.',
  scope: 'accounts.connect',
  idempotent: 'required',
  cost: 1,
  params: IdParams,
  body: InviteCreate,
  answer: Invite,
  codes: ['client_archived'],
  example: { body: { platforms: ['bluesky', 'threads'], expiresInHours: 48 }, data: exampleInvite },
  handle: async (call) => {
    const { deps, body, params, now } = call;
    const created = await call.stream(invite).create({
      command: async (): Promise<InviteCommand> => {
        await requireLiveClient(call, params.id);
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
    const row = writtenRow(rowOf(invites, created.events));
    const token = row.expires_at > now ? inviteToken(deps.secrets, row.id, row.key_version) : null;
    return {
      data: {
        object: 'connect_invite',
        inviteId: row.id,
        clientId: row.client_id,
        url: token === null ? null : `${deps.consoleUrl()}/invite/${token}`,
        token,
        platformsRequested: row.platforms,
        maxAccounts: created.state.status === 'none' ? defaultMaxAccounts : created.state.maxAccounts,
        expiresAt: row.expires_at,
        createdAt: row.created_at,
      },
      replayed: created.replayed,
    };
  },
});

/** Read from the client's own stream: an archive that was acknowledged is seen. */
const requireLiveClient = async (call: Pick<Call, 'deps' | 'workspaceId' | 'guard'>, id: string): Promise<void> => {
  const loaded = await call.deps.store.load(client, id);
  ownStream(call, 'client')(loaded);
  if (loaded.state.status === 'archived') {
    throw new Refusal('client_archived', 'An archived client takes no new accounts.');
  }
};
