import { getClient as queryClient, renderClient } from '#projections/models/clients.ts';
import { Client } from '#schemas/http/client.ts';
import { IdParams } from '#schemas/http/common.ts';
import { exampleClient } from '../examples.ts';
import { operation } from '../operation.ts';
import { readRow } from '../rows.ts';

export const getClient = operation({
  id: 'getClient',
  method: 'GET',
  path: '/clients/{id}',
  tag: 'clients',
  summary: 'Get a client, also an archived one',
  scope: 'clients.read',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Client,
  codes: [],
  example: { data: exampleClient },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const row = await readRow(call, 'client', ['workspace'], (id) => queryClient(deps.knex, workspaceId, id));
    return { data: renderClient(row), revision: row.revision };
  },
});
