import { Type } from 'typebox';
import { type InviteState, invite } from '#domain/invite.ts';
import type { NewestFirst } from '#projections/engine/rows.ts';
import { getClient } from '#projections/models/clients.ts';
import { invitesOfClient } from '#projections/models/invites.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import { IdParams, paging } from '#schemas/http/common.ts';
import { ConnectInvite } from '#schemas/http/invite.ts';
import { listPage, newestFirst } from '../cursor.ts';
import { exampleInvite } from '../examples.ts';
import { showConnectInvite } from '../invites/show.ts';
import { operation } from '../operation.ts';
import { readRow } from '../rows.ts';

export const listConnectInvites = operation({
  id: 'listConnectInvites',
  method: 'GET',
  path: '/clients/{id}/connect-invites',
  tag: 'clients',
  summary: 'List the links that connect accounts to a client, newest first',
  description:
    'Those that expired or were revoked, too; without their addresses, which the answer to the creation alone shows.',
  scope: 'accounts.connect',
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
