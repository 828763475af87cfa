import { setTimeout as delay } from 'node:timers/promises';
import { client } from '#domain/client.ts';
import { rulesIssues } from '#domain/client-rules.ts';
import { isTimezone } from '#domain/zones.ts';
import { rowOf } from '#projections/engine/model.ts';
import type { NewestFirst } from '#projections/engine/rows.ts';
import {
  type ClientRow,
  clients,
  getClient as queryClient,
  listClients as queryClients,
  renderClient,
} from '#projections/models/clients.ts';
import type { ClientFields } from '#schemas/client.ts';
import { Client, ClientCreate, ClientQuery, ClientUpdate } from '#schemas/http/client.ts';
import { AsOfQuery, IdParams } from '#schemas/http/common.ts';
import { archiveClient as archiveNamedClient, changeClient } from '#services/workflows/clients/change.ts';
import { createNamedClient } from '#services/workflows/clients/create.ts';
import type { Claimant } from '#services/workflows/clients/names.ts';
import { withinLimit } from '../call/access.ts';
import { listPage, newestFirst } from '../call/cursor.ts';
import { exampleClient } from '../call/examples.ts';
import { type Call, operation, type Tag } from '../call/operation.ts';
import { invalid, Refusal } from '../call/refusal.ts';
import { ownStream, readRow, writtenRow } from '../call/rows.ts';
import { keptWarnings } from '../call/warnings.ts';
import { answerClientThen, listClientsThen } from '../past/things.ts';

export const clientsTag: Tag = {
  place: 20,
  name: 'clients',
  noun: 'client',
  about: 'Brands and influencers, and the links that connect their accounts.',
};

/** Rules about values that a schema cannot say. */

/** @throws Refusal 422 naming the member. */
const requireTimezone = (timezone: string | null | undefined, path: string): void => {
  if (timezone !== null && timezone !== undefined && !isTimezone(timezone)) {
    throw invalid(path, 'unknown_timezone', 'must be an IANA timezone, such as Europe/Berlin');
  }
};

/** @throws Refusal 422 for rules that are too many or too long */
const requireRules = (rules: ClientFields['rules'] | null | undefined): void => {
  const errors = rulesIssues(rules ?? {}).map((one) => ({ ...one, path: `/rules${one.path}` }));
  if (errors.length > 0) throw new Refusal('validation_failed', 'The input is not valid.', { errors });
};

/** The largest serialised body, in bytes, that fits into one event beside the other members of the event. */
const maxStored = 400 * 1024;

/** Runs before the first of several appends, so that a body that is too large leaves no trace. @throws Refusal 422 */
const requireStorable = (body: unknown): void => {
  if (Buffer.byteLength(JSON.stringify(body)) > maxStored)
    throw invalid('', 'too_many_bytes', `must be at most ${maxStored} bytes as stored`);
};

/** The caller, in the form that the workflows of clients take. */
export const claimantOf = ({ deps, context, positions }: Pick<Call, 'deps' | 'context' | 'positions'>): Claimant => ({
  store: deps.store,
  context,
  positions,
  clock: deps.clock,
  wait: (ms) => delay(ms),
});

/** Adds the number of accounts, which a row made from the client's own events lacks. */
const withAccounts = async (call: Pick<Call, 'deps' | 'workspaceId'>, row: ClientRow): Promise<ClientRow> => {
  const counted = await queryClient(call.deps.knex, call.workspaceId, row.id);
  return { ...row, account_count: counted?.account_count ?? 0 };
};

/** Reads the client's own stream, which shows an archive as soon as it is acknowledged. @throws Refusal 404, 422 */
export const requireUnarchived = async (
  call: Pick<Call, 'deps' | 'workspaceId' | 'guard'>,
  id: string,
): Promise<void> => {
  const loaded = await call.deps.store.load(client, id);
  ownStream(call, 'client')(loaded);
  if (loaded.state.status === 'archived') {
    throw new Refusal('client_archived', 'An archived client takes no new accounts.');
  }
};

/** All but the name, by which the client is found. */
const optionalMembers = Object.keys(ClientCreate.properties).filter((name) => name !== 'name');

export const createClient = operation({
  id: 'createClient',
  method: 'POST',
  path: '/clients',
  tag: clientsTag,
  summary: 'Create a client',
  description:
    'Idempotent on the name: if a live client has this name already (compared trimmed and without case), the answer is that client as it is now. The other members of the body are then ignored (`meta.warnings` names those that differ), and nothing is recorded under the key.',
  scope: 'clients.manage',
  limited: 'refused',
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

export const getClient = operation({
  id: 'getClient',
  method: 'GET',
  path: '/clients/{id}',
  tag: clientsTag,
  summary: 'Get a client, also an archived one',
  scope: 'clients.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  query: AsOfQuery,
  answer: Client,
  codes: ['history_too_long'],
  example: { data: exampleClient },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return answerClientThen(call, call.query.asOf);
    const { deps, workspaceId } = call;
    const row = await readRow(call, 'client', ['workspace'], (id) => queryClient(deps.knex, workspaceId, id));
    return { data: renderClient(row), revision: row.revision };
  },
});

export const listClients = operation({
  id: 'listClients',
  method: 'GET',
  path: '/clients',
  tag: clientsTag,
  summary: 'List clients, newest first',
  scope: 'clients.read',
  limited: 'filtered',
  idempotent: 'none',
  cost: 1,
  query: ClientQuery,
  answer: Client,
  list: true,
  codes: ['history_too_long'],
  example: { data: exampleClient },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return listClientsThen(call, call.query.asOf);
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

export const updateClient = operation({
  id: 'updateClient',
  method: 'PATCH',
  path: '/clients/{id}',
  tag: clientsTag,
  summary: 'Change a client',
  description:
    'Only the members that are sent change. An object is replaced as a whole; null resets a member to its default.',
  scope: 'clients.manage',
  limited: 'ids',
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

export const archiveClient = operation({
  id: 'archiveClient',
  method: 'DELETE',
  path: '/clients/{id}',
  tag: clientsTag,
  summary: 'Archive a client',
  description:
    'The client takes no new posts, and another client may take its name at once. The service cancels its open targets and revokes its connect links shortly after. GET still answers the archived client, and archiving it again answers the same.',
  scope: 'clients.manage',
  limited: 'ids',
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
