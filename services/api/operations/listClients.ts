import type { NewestFirst } from '#projections/engine/rows.ts';
import { listClients as queryClients, renderClient } from '#projections/models/clients.ts';
import { Client, ClientQuery } from '#schemas/http/client.ts';
import { withinLimit } from '../client-limits.ts';
import { listPage, newestFirst } from '../cursor.ts';
import { exampleClient } from '../examples.ts';
import { operation } from '../operation.ts';

export const listClients = operation({
  id: 'listClients',
  method: 'GET',
  path: '/clients',
  tag: 'clients',
  summary: 'List clients, newest first',
  scope: 'clients.read',
  idempotent: 'none',
  cost: 1,
  query: ClientQuery,
  answer: Client,
  list: true,
  codes: [],
  example: { data: exampleClient },
  handle: async (call) => {
    await call.behind(['workspace']);
    const { type, search, archived } = call.query;
    const filters = {
      archived,
      ...withinLimit(call.principal),
      ...(type === undefined ? {} : { type }),
      ...(search === undefined ? {} : { search }),
    };
    return listPage('listClients', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        queryClients(knex, call.workspaceId, filters, page),
      keyOf: newestFirst,
      show: renderClient,
    });
  },
});
