import { rowOf } from '#projections/engine/model.ts';
import { clients, renderClient } from '#projections/models/clients.ts';
import { Client, ClientCreate } from '#schemas/http/client.ts';
import { createNamedClient } from '#services/workflows/clients/create.ts';
import { requireRules, requireStorable, requireTimezone } from '../checks.ts';
import { claimantOf } from '../clients.ts';
import { exampleClient } from '../examples.ts';
import { operation } from '../operation.ts';
import { writtenRow } from '../rows.ts';
import { keptWarnings } from '../warnings.ts';

/** All but the name, by which the client is found. */
const optionalMembers = Object.keys(ClientCreate.properties).filter((name) => name !== 'name');

export const createClient = operation({
  id: 'createClient',
  method: 'POST',
  path: '/clients',
  tag: 'clients',
  summary: 'Create a client',
  description:
    'Idempotent on the name: if a live client has this name already (compared trimmed and without case), the answer is that client as it is now. The other members of the body are then ignored (`meta.warnings` names those that differ), and nothing is recorded under the key.',
  scope: 'clients.manage',
  idempotent: 'required',
  cost: 1,
  etag: true,
  body: ClientCreate,
  answer: Client,
  codes: [],
  example: { body: { name: 'Acme', type: 'brand', defaultPostMode: 'now' }, data: exampleClient },
  handle: async (call) => {
    requireTimezone(call.body.timezone, '/timezone');
    requireRules(call.body.rules);
    requireStorable(call.body);
    const { events, replayed } = await createNamedClient(claimantOf(call), call.key ?? '', call.body);
    const row = writtenRow(rowOf(clients, events));
    const data = renderClient(row);
    const isOwn = events.some(({ metadata }) => metadata.commandId === call.context.commandId);
    const warnings = isOwn || replayed ? [] : keptWarnings(call, optionalMembers, data);
    return { data, revision: row.revision, replayed, warnings };
  },
});
