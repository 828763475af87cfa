import { rowOf } from '#projections/engine/model.ts';
import { clients, renderClient } from '#projections/models/clients.ts';
import { Client } from '#schemas/http/client.ts';
import { IdParams } from '#schemas/http/common.ts';
import { archiveClient as archiveNamedClient } from '#services/workflows/clients/change.ts';
import { claimantOf, withAccounts } from '../clients.ts';
import { exampleClient } from '../examples.ts';
import { operation } from '../operation.ts';
import { ownStream, writtenRow } from '../rows.ts';

export const archiveClient = operation({
  id: 'archiveClient',
  method: 'DELETE',
  path: '/clients/{id}',
  tag: 'clients',
  summary: 'Archive a client',
  description:
    'The client takes no new posts, and another client may take its name at once. The service cancels its open targets and revokes its connect links shortly after. GET still answers the archived client, and archiving it again answers the same.',
  scope: 'clients.manage',
  role: 'owner',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Client,
  codes: [],
  example: { data: { ...exampleClient, archivedAt: '2026-02-01T08:00:00.000Z', revision: 1 } },
  handle: async (call) => {
    const events = await archiveNamedClient(claimantOf(call), call.params.id, ownStream(call, 'client'));
    const row = await withAccounts(call, writtenRow(rowOf(clients, events)));
    return { data: renderClient(row), revision: row.revision };
  },
});
