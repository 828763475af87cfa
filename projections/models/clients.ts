import type { Knex } from 'knex';
import { batchesOf } from '#contracts/base/batches.ts';
import { client } from '#domain/client.ts';
import type { ClientEvent, ClientFields } from '#schemas/client.ts';
import { instantOf } from '#schemas/common.ts';
import { change, defineModel, type Recount, type Row } from '../engine/model.ts';
import { asRow, type NewestFirst, newestFirst, type Page, type PageOf, substring } from '../engine/rows.ts';
import { view } from '../shapes.ts';
import { clientPublisher } from '../webhooks/render/agency.ts';

/** Clients of an agency. The number of accounts is counted from the accounts. */

interface Own {
  readonly name: string;
  readonly type: ClientFields['type'];
  readonly default_post_mode: ClientFields['defaultPostMode'];
  readonly timezone: string | null;
  readonly approval_required: boolean;
  readonly rules: ClientFields['rules'];
  readonly brand_voice: ClientFields['brandVoice'];
  readonly archived_at: string | null;
  readonly erased: boolean;
  /** Accounts that are connected or need a new authorization. */
  readonly account_count: number;
}
export type ClientRow = Row<Own>;

const written = (fields: Partial<ClientFields>): Partial<Own> => ({
  ...(fields.name === undefined ? {} : { name: fields.name }),
  ...(fields.type === undefined ? {} : { type: fields.type }),
  ...(fields.defaultPostMode === undefined ? {} : { default_post_mode: fields.defaultPostMode }),
  ...(fields.timezone === undefined ? {} : { timezone: fields.timezone }),
  ...(fields.approvalRequired === undefined ? {} : { approval_required: fields.approvalRequired }),
  ...(fields.rules === undefined ? {} : { rules: fields.rules }),
  ...(fields.brandVoice === undefined ? {} : { brand_voice: fields.brandVoice }),
});

export const clients = defineModel<Own, ClientEvent>({
  name: 'clients',
  kind: 'client',
  publisher: clientPublisher,
  columns: {
    name: 'text',
    type: 'text',
    default_post_mode: 'text',
    timezone: 'text',
    approval_required: 'bool',
    rules: 'jsonb',
    brand_voice: 'jsonb',
    archived_at: 'timestamptz',
    erased: 'bool',
    account_count: 'int4',
  },
  counted: { account_count: '0' },
  fences: client.fences ?? [],
  indexes: [{ on: '(workspace_id, created_at, id)' }],
  on: {
    ClientCreated: (_row, fields) => ({
      name: fields.name,
      type: fields.type,
      default_post_mode: fields.defaultPostMode,
      timezone: fields.timezone,
      approval_required: fields.approvalRequired,
      rules: fields.rules,
      brand_voice: fields.brandVoice,
      archived_at: null,
      erased: false,
      account_count: 0,
    }),
    ClientUpdated: change((row, fields) => ({ ...row, ...written(fields) })),
    ClientArchived: change((row, _data, event) => ({ ...row, archived_at: instantOf(event.metadata) })),
    ClientNameClaimLapsed: change((row) => row),
    ClientErased: change((row) => ({ ...row, erased: true })),
  },
});

export const renderClient = (row: ClientRow) => ({
  id: row.id,
  object: 'client' as const,
  name: row.name,
  type: row.type,
  defaultPostMode: row.default_post_mode,
  timezone: row.timezone,
  approvalRequired: row.approval_required,
  rules: row.rules,
  brandVoice: row.brand_voice,
  archivedAt: row.archived_at,
  accountCount: row.account_count,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  revision: row.revision,
});

const clientsById = batchesOf(async (knex: Knex, ids): Promise<ReadonlyMap<string, ClientRow>> => {
  const found = await knex
    .raw(`select * from ${view('clients')} as clients where id = any(?::uuid[])`, [[...ids]])
    .options({ name: 'clients-by-id' });
  return new Map(found.rows.map((row: Record<string, unknown>) => [row.id, asRow(clients, row)]));
});

export const getClient = async (knex: Knex, workspaceId: string, id: string): Promise<ClientRow | null> => {
  const row = await clientsById(knex, id);
  return row?.workspace_id === workspaceId ? row : null;
};

export interface ClientFilters {
  readonly type?: ClientFields['type'];
  /** Part of the name, case-insensitive. */
  readonly search?: string;
  /** Default false: only live clients. */
  readonly archived?: boolean;
  /** Only these clients. */
  readonly clientIds?: readonly string[];
}

/** Newest first. */
export const listClients = async (
  knex: Knex,
  workspaceId: string,
  filters: ClientFilters,
  page: PageOf<NewestFirst>,
): Promise<Page<ClientRow>> => {
  const query = knex(`${view('clients')} as clients`).where({ workspace_id: workspaceId });
  if (filters.clientIds !== undefined) query.whereRaw('id = any(?::uuid[])', [[...filters.clientIds]]);
  if (filters.type !== undefined) query.where({ type: filters.type });
  if (filters.search !== undefined) query.whereILike('name', substring(filters.search));
  if (filters.archived === true) query.whereNotNull('archived_at');
  else query.whereNull('archived_at');
  return newestFirst(query, clients, page);
};

/**
 * Recounts a client's accounts and wipes them after an erasure. Accounts are other streams on other partitions, so an
 * account event that was decoded before the key was destroyed may be applied after ClientErased. Both transactions hold
 * the client's row here, so the later one wipes, and a replay ends with the same rows. The work grows with the accounts
 * of one client alone: 10,000 are 217 blocks for each of their events, and one write of them all at the erasure.
 * NOTE: `offset 0`, or Postgres counts a second time for the comparison.
 */
export const clientAccounts: Recount = {
  owner: 'clients',
  children: [{ model: 'accounts', by: 'client_id' }],
  statements: (table) => [
    `update ${table('clients')} o set account_count = c.n
     from (
       select u.id, (
         select count(*)::int from ${table('accounts')} a
         where a.client_id = u.id and a.status in ('connected', 'reauth_required')) as n
       from unnest($1::uuid[]) u(id) offset 0
     ) c
     where o.id = c.id and o.account_count <> c.n`,
    `update ${table('accounts')} a set username = null, display_name = null, avatar_url = null
     from ${table('clients')} o
     where o.id = any($1::uuid[]) and o.erased and a.client_id = o.id
       and (a.username is not null or a.display_name is not null or a.avatar_url is not null)`,
  ],
};
