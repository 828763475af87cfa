import { rowOf } from '#projections/engine/model.ts';
import { clients, renderClient } from '#projections/models/clients.ts';
import { Client, ClientUpdate } from '#schemas/http/client.ts';
import { IdParams } from '#schemas/http/common.ts';
import { changeClient } from '#services/workflows/clients/change.ts';
import { requireRules, requireStorable, requireTimezone } from '../checks.ts';
import { claimantOf, withAccounts } from '../clients.ts';
import { exampleClient } from '../examples.ts';
import { operation } from '../operation.ts';
import { ownStream, writtenRow } from '../rows.ts';

export const updateClient = operation({
  id: 'updateClient',
  method: 'PATCH',
  path: '/clients/{id}',
  tag: 'clients',
  summary: 'Change a client',
  description:
    'Only the members that are sent change. An object is replaced as a whole; null resets a member to its default.',
  scope: 'clients.manage',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  merge: true,
  params: IdParams,
  body: ClientUpdate,
  answer: Client,
  codes: ['already_exists', 'client_archived', 'stream_full'],
  example: { body: { rules: { bannedWords: ['cheap'] } }, data: exampleClient },
  handle: async (call) => {
    requireTimezone(call.body.timezone, '/timezone');
    requireRules(call.body.rules);
    requireStorable(call.body);
    const events = await changeClient(claimantOf(call), call.params.id, call.body, ownStream(call, 'client'));
    const row = await withAccounts(call, writtenRow(rowOf(clients, events)));
    return { data: renderClient(row), revision: row.revision };
  },
});
