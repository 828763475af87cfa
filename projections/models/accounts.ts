import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { batchesOf } from '#contracts/base/batches.ts';
import { capabilities } from '#domain/platforms/index.ts';
import type { AccountEvent } from '#schemas/account.ts';
import type { ObservedWindow } from '#schemas/cadence.ts';
import { instantOf, type Platform } from '#schemas/common.ts';
import { change, defineModel, type Row } from '../engine/model.ts';
import { asRow, type NewestFirst, newestFirst, type Page, type PageOf } from '../engine/rows.ts';
import { view } from '../shapes.ts';
import { accountPublisher } from '../webhooks/render/agency.ts';

/**
 * Connected accounts. Personal members are null once the client is erased; see the client's recount in index.ts. The
 * file is long because the columns, their fold, the rendering and the queries change together.
 */

type AccountStatus = 'connected' | 'reauth_required' | 'disconnected';

interface Own {
  readonly client_id: string;
  readonly platform: Platform;
  readonly external_id: string;
  readonly username: string | null;
  readonly display_name: string | null;
  readonly avatar_url: string | null;
  readonly timezone: string | null;
  readonly status: AccountStatus;
  readonly health_reason: string | null;
  /** When the network last accepted or refused the account's authorization. */
  readonly checked_at: string;
  /** When the account was last disconnected, and the revision of that event; null: never. */
  readonly disconnected_at: string | null;
  readonly disconnected_revision: number | null;
  /** When it was connected again after that; null: it was not. */
  readonly reconnected_at: string | null;
  readonly scopes: readonly string[];
  readonly expires_at: string | null;
  readonly network: 'live' | 'sandbox';
  /** The limits that the network reported; null: none were. */
  readonly observed_limits: readonly ObservedWindow[] | null;
}
export type AccountRow = Row<Own>;

type Authorized = Extract<AccountEvent, { readonly type: 'AccountConnected' | 'AccountReauthorized' }>['data'];

/** Members that each authorization sets, the first and every later one. */
const authorized = (data: Authorized, at: string) =>
  ({
    username: data.username,
    display_name: data.displayName,
    avatar_url: data.avatarUrl,
    timezone: data.timezone,
    status: 'connected',
    health_reason: null,
    checked_at: at,
    scopes: data.scopes,
    expires_at: data.expiresAt,
  }) as const;

export const accounts = defineModel<Own, AccountEvent>({
  name: 'accounts',
  kind: 'account',
  publisher: accountPublisher,
  columns: {
    client_id: 'uuid',
    platform: 'text',
    external_id: 'text',
    username: 'text',
    display_name: 'text',
    avatar_url: 'text',
    timezone: 'text',
    status: 'text',
    health_reason: 'text',
    checked_at: 'timestamptz',
    disconnected_at: 'timestamptz',
    disconnected_revision: 'int4',
    reconnected_at: 'timestamptz',
    scopes: 'text[]',
    expires_at: 'timestamptz',
    network: 'text',
    observed_limits: 'jsonb',
  },
  indexes: [
    { on: '(workspace_id, created_at, id)' },
    { on: '(client_id, created_at, id)' },
    { on: "(checked_at) where status = 'disconnected'" },
    { on: "(platform, external_id) where network = 'live'" },
    { on: '(disconnected_at) where disconnected_at is not null' },
  ],
  on: {
    AccountConnected: (_row, data, event) => ({
      client_id: data.clientId,
      platform: data.platform,
      external_id: data.externalId,
      ...authorized(data, instantOf(event.metadata)),
      disconnected_at: null,
      disconnected_revision: null,
      reconnected_at: null,
      network: data.network,
      observed_limits: null,
    }),
    AccountReauthorized: change((row, data, event) => ({
      ...row,
      ...authorized(data, instantOf(event.metadata)),
      reconnected_at: row.status === 'disconnected' ? instantOf(event.metadata) : row.reconnected_at,
    })),
    AccountReauthRequired: change((row, { reason }, event) => ({
      ...row,
      status: 'reauth_required',
      health_reason: reason,
      checked_at: instantOf(event.metadata),
    })),
    AccountDisconnected: change((row, { reason }, event) => ({
      ...row,
      status: 'disconnected',
      health_reason: reason,
      checked_at: instantOf(event.metadata),
      disconnected_at: instantOf(event.metadata),
      disconnected_revision: event.revision,
      reconnected_at: null,
    })),
    AccountLimitsObserved: change((row, { windows }) => ({ ...row, observed_limits: windows })),
    AccountProfileChanged: change((row, { username, displayName, avatarUrl }) => ({
      ...row,
      username,
      display_name: displayName,
      avatar_url: avatarUrl,
    })),
  },
});

export const renderAccount = (row: AccountRow) => ({
  id: row.id,
  object: 'account' as const,
  clientId: row.client_id,
  platform: row.platform,
  externalId: row.external_id,
  username: row.username,
  displayName: row.display_name,
  avatarUrl: row.avatar_url,
  timezone: row.timezone,
  status: row.status,
  health: {
    state: row.status === 'connected' ? ('ok' as const) : row.status,
    reason: row.health_reason,
    checkedAt: row.checked_at,
  },
  scopes: row.scopes,
  expiresAt: row.expires_at,
  capabilities: capabilities(row.platform),
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  revision: row.revision,
});

export const getAccount = async (knex: Knex, workspaceId: string, id: string): Promise<AccountRow | null> => {
  const row = await knex(`${view('accounts')} as accounts`)
    .where({ id, workspace_id: workspaceId })
    .first();
  return row === undefined ? null : asRow(accounts, row);
};

/** The workspace's accounts among these ids, by id. */
export const accountsByIds = async (
  knex: Knex,
  workspaceId: string,
  ids: readonly string[],
): Promise<readonly AccountRow[]> => {
  const rows: Record<string, unknown>[] = await knex(`${view('accounts')} as accounts`)
    .where({ workspace_id: workspaceId })
    .whereRaw('id = any(?::uuid[])', [[...ids]])
    .orderBy('id');
  return rows.map((row) => asRow(accounts, row));
};

/** Ids of connected accounts: a network can be asked about each of them. */
export const connectedAccountIds = async (knex: Knex, workspaceId: string, max: number): Promise<readonly string[]> =>
  knex(`${view('accounts')} as accounts`)
    .where({ workspace_id: workspaceId, status: 'connected' })
    .orderBy('id')
    .limit(max)
    .pluck('id');

export interface LiveAccount {
  readonly id: string;
  /** ISO 8601. */
  readonly created_at: string;
}

/**
 * Accounts that are not disconnected, of clients that are live: the workers ask no network about an archived client.
 */
export const liveAccounts = async (
  knex: Knex,
  workspaceId: string,
  filters: { readonly clientId?: string; readonly accountId?: string; readonly platforms?: readonly Platform[] },
): Promise<readonly LiveAccount[]> => {
  const { clientId, accountId, platforms } = filters;
  const query = knex(`${view('accounts')} as a`)
    .where({ workspace_id: workspaceId, ...(clientId === undefined ? {} : { client_id: clientId }) })
    .whereNot({ status: 'disconnected' })
    .whereNotExists(
      knex(`${view('clients')} as c`).whereRaw('c.id = a.client_id and (c.archived_at is not null or c.erased)'),
    )
    .select('id', 'created_at');
  if (accountId !== undefined) query.andWhere({ id: accountId });
  if (platforms !== undefined) query.whereRaw('platform = any(?::text[])', [[...platforms]]);
  const rows: { id: string; created_at: Date }[] = await query;
  return rows.map(({ id, created_at }) => ({ id, created_at: created_at.toISOString() }));
};

const groupsByClient = batchesOf(async (knex: Knex, clientIds): Promise<ReadonlyMap<string, readonly AccountRow[]>> => {
  const found = await knex
    .raw(
      `select * from ${view('accounts')} as accounts
       where client_id = any(?::uuid[]) and status in ('connected', 'reauth_required') order by id`,
      [[...clientIds]],
    )
    .options({ name: 'accounts-by-client' });
  const rows: AccountRow[] = found.rows.map((row: Record<string, unknown>) => asRow(accounts, row));
  return Map.groupBy(rows, (row) => row.client_id);
});

/** All accounts of a client that may receive posts (connected, or in need of a new authorization), by id. */
export const groupOf = async (knex: Knex, workspaceId: string, clientId: string): Promise<readonly AccountRow[]> =>
  (await groupsByClient(knex, clientId))?.filter((row) => row.workspace_id === workspaceId) ?? [];

/** Networks on which the client, or with null any live client of the workspace, has a connected account. */
export const livePlatforms = async (
  knex: Knex,
  workspaceId: string,
  clientId: string | null,
): Promise<readonly Platform[]> => {
  const archived = knex(`${view('clients')} as c`)
    .whereRaw('c.id = a.client_id')
    .whereNotNull('c.archived_at');
  const query = knex(`${view('accounts')} as a`)
    .where({ 'a.workspace_id': workspaceId, 'a.status': 'connected' })
    .whereNotExists(archived);
  if (clientId !== null) query.where({ 'a.client_id': clientId });
  const rows: { platform: Platform }[] = await query.distinct('a.platform').orderBy('a.platform');
  return rows.map(({ platform }) => platform);
};

export const beforeAllWorkspaces = '00000000-0000-0000-0000-000000000000';
const workspacesPerPage = 500;

/** Workspaces with live accounts on a network that may receive posts, by id; at most 500 behind this one. */
export const workspacesOnNetwork = async (
  pool: Pick<Pool, 'query'>,
  platform: Platform,
  after: string,
): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ id: string }>(
    `select distinct workspace_id::text as id from ${view('accounts')} as accounts
     where platform = $1 and network = 'live' and status in ('connected', 'reauth_required') and workspace_id > $2
     order by 1 limit $3`,
    [platform, after, workspacesPerPage],
  );
  return rows.map(({ id }) => id);
};

export interface AccountFilters {
  readonly clientId?: string;
  /** Only accounts of these clients. */
  readonly clientIds?: readonly string[];
  readonly platforms?: readonly Platform[];
}

/** Newest first. */
export const listAccounts = async (
  knex: Knex,
  workspaceId: string,
  filters: AccountFilters,
  page: PageOf<NewestFirst>,
): Promise<Page<AccountRow>> => {
  const query = knex(`${view('accounts')} as accounts`).where({ workspace_id: workspaceId });
  if (filters.clientId !== undefined) query.where({ client_id: filters.clientId });
  if (filters.clientIds !== undefined) query.whereRaw('client_id = any(?::uuid[])', [[...filters.clientIds]]);
  if (filters.platforms !== undefined) query.whereRaw('platform = any(?::text[])', [[...filters.platforms]]);
  return newestFirst(query, accounts, page);
};
