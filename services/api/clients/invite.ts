import { Type } from 'typebox';
import { birthOf } from '#domain/decider.ts';
import { type InviteCommand, type InviteState, invite } from '#domain/invite.ts';
import { connectable, rulesOf } from '#domain/platforms/index.ts';
import { rowOf } from '#projections/engine/model.ts';
import type { NewestFirst } from '#projections/engine/rows.ts';
import { getClient } from '#projections/models/clients.ts';
import { invites, invitesOfClient } from '#projections/models/invites.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { linkToken } from '#runtime/identity/link-token.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import { IdParams, paging } from '#schemas/http/common.ts';
import { ConnectInvite, ConnectInviteCreate, ConnectInviteParams } from '#schemas/http/invite.ts';
import { defaultMaxAccounts } from '#schemas/invite.ts';
import { listPage, newestFirst } from '../call/cursor.ts';
import { liveNetworksOf } from '../call/deps.ts';
import { exampleInvite } from '../call/examples.ts';
import { type Call, operation } from '../call/operation.ts';
import { notFound, Refusal } from '../call/refusal.ts';
import { makerOf, readRow, writtenRow } from '../call/rows.ts';
import { clientsTag, requireUnarchived } from './clients.ts';

/** A connect link as its members see it. */

/** @param withAddress only in the answer to its creation: a list would hand every link to each of its readers */
const showConnectInvite = (
  { deps, realNow }: Pick<Call, 'deps' | 'realNow'>,
  { state, events }: Pick<Loaded<InviteState>, 'state' | 'events'>,
  inviteId: string,
  withAddress: boolean,
) => {
  const born = birthOf(invite, events);
  if (state.status === 'none' || born === undefined) throw notFound('connect invite');
  const { clientId, platforms, maxAccounts, accountIds, expiresAt, keyVersion } = state;
  const isRevoked = state.status === 'revoked';
  const isShown = withAddress && !isRevoked && expiresAt > realNow;
  const token = isShown ? linkToken(deps.secrets, 'invite', [inviteId], keyVersion) : null;
  const { recipientEmail } = born.data as { readonly recipientEmail?: string | null };
  return {
    object: 'connect_invite' as const,
    inviteId,
    clientId,
    url: token === null ? null : `${deps.consoleUrl()}/invite/${token}`,
    token,
    platformsRequested: platforms,
    maxAccounts,
    recipientEmail: recipientEmail ?? null,
    accountIds,
    createdBy: makerOf(born),
    isRevoked,
    expiresAt,
    createdAt: born.metadata.occurredAt,
  };
};

const hourMs = 3_600_000;

export const createConnectInvite = operation({
  id: 'createConnectInvite',
  method: 'POST',
  path: '/clients/{id}/connect-invites',
  tag: clientsTag,
  summary: 'Create a link that connects accounts to a client',
  description:
    'Anyone with the link may connect accounts of its platforms until it expires: at most `maxAccounts` different accounts, each as often as needed. It works while its maker may connect accounts: not after they were removed, or have another role; the end of the key that made it changes nothing. The page behind it offers those networks that can be connected here when a person opens it; a live link to none is refused, and `meta.warnings` names each of the others that cannot be connected now.',
  scope: 'accounts.connect',
  limited: 'ids',
  idempotent: 'required',
  cost: 1,
  params: IdParams,
  body: ConnectInviteCreate,
  answer: ConnectInvite,
  codes: ['client_archived', 'platform_not_available'],
  example: { body: { platforms: ['bluesky', 'threads'], expiresInHours: 48 }, data: exampleInvite },
  handle: async (call) => {
    const { deps, principal, body, params, realNow } = call;
    const offered = connectable(principal.mode, body.platforms, liveNetworksOf(deps));
    const waiting = body.platforms.filter((platform) => !offered.includes(platform));
    const created = await call.stream(invite).create({
      command: async (): Promise<InviteCommand> => {
        await requireUnarchived(call, params.id);
        if (waiting.length === body.platforms.length) {
          throw new Refusal(
            'platform_not_available',
            'This installation connects live accounts of none of these networks.',
          );
        }
        return {
          type: 'Create',
          clientId: params.id,
          platforms: body.platforms,
          expiresAt: new Date(Date.parse(realNow) + body.expiresInHours * hourMs).toISOString(),
          keyVersion: deps.secrets.current,
          recipientEmail: body.recipientEmail ?? null,
          maxAccounts: body.maxAccounts ?? defaultMaxAccounts,
        };
      },
    });
    const { id } = writtenRow(rowOf(invites, created.events));
    const warnings = waiting.map((platform) => ({
      ...{ code: 'platform_not_connectable', platform, path: `/platforms/${body.platforms.indexOf(platform)}` },
      message: `${rulesOf(platform).name} cannot be connected here yet, and the link says so: this installation has no app of ${rulesOf(platform).name}`,
    }));
    return { data: showConnectInvite(call, created, id, true), replayed: created.replayed, warnings };
  },
});

export const listConnectInvites = operation({
  id: 'listConnectInvites',
  method: 'GET',
  path: '/clients/{id}/connect-invites',
  tag: clientsTag,
  summary: 'List the links that connect accounts to a client, newest first',
  description:
    'Those that expired or were revoked, too; without their addresses, which the answer to the creation alone shows.',
  scope: 'accounts.connect',
  limited: 'ids',
  idempotent: 'none',
  cost: 2,
  params: IdParams,
  query: Type.Object(paging),
  answer: ConnectInvite,
  list: true,
  codes: [],
  example: { data: { ...exampleInvite, url: null, token: null } },
  handle: async (call) => {
    const { deps, workspaceId, params } = call;
    await readRow(call, 'client', ['workspace'], (id) => getClient(deps.knex, workspaceId, id));
    return listPage('listConnectInvites', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        invitesOfClient(knex, workspaceId, params.id, page),
      keyOf: newestFirst,
      // The address of the recipient and the maker are in the stream alone.
      beside: async (rows) => {
        const loaded = new Map<string, Loaded<InviteState>>();
        await inParallel(rows, 8, async ({ id }) => void loaded.set(id, await deps.store.load(invite, id)));
        return loaded;
      },
      show: ({ id }, loaded) => {
        const found = loaded.get(id);
        return found === undefined ? null : showConnectInvite(call, found, id, false);
      },
    });
  },
});

export const revokeConnectInvite = operation({
  id: 'revokeConnectInvite',
  method: 'DELETE',
  path: '/clients/{id}/connect-invites/{inviteId}',
  tag: clientsTag,
  summary: 'Revoke a link that connects accounts',
  description:
    'Nobody connects an account through it any more; accounts that were connected stay. Revoking it again answers the same.',
  scope: 'accounts.connect',
  limited: 'ids',
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
