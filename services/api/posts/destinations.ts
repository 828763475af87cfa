import { account } from '#domain/account.ts';
import { client } from '#domain/client.ts';
import type { ErrorCode } from '#domain/codes.ts';
import { Rejection } from '#domain/decider.ts';
import type { Destination } from '#domain/scheduling.ts';
import { accountsByIds, groupOf } from '#projections/accounts.ts';
import { getClient } from '#projections/clients.ts';
import type { Platform } from '#schemas/common.ts';
import type { Issue, IssueCode } from '#schemas/issues.ts';
import type { PostBody, TargetSelection } from '#schemas/post.ts';
import type { Call } from '../operation.ts';

/**
 * The accounts that a selection names. Sets come from the read models, after a wait for the caller's own writes; an id
 * that the read models do not have yet is looked up in its stream, so that an account connected a moment ago is never
 * "unknown".
 */

export interface SelectedClient {
  readonly id: string;
  readonly archived: boolean;
  readonly approvalRequired: boolean;
  readonly timezone: string | null;
}

interface Account {
  readonly id: string;
  readonly clientId: string;
  readonly platform: Platform;
  readonly status: string;
  readonly timezone: string | null;
}

export interface Selected {
  readonly clients: readonly SelectedClient[];
  readonly destinations: readonly Destination[];
}

type Asking = Pick<Call, 'deps' | 'workspaceId'>;

const clientOf = async ({ deps, workspaceId }: Asking, id: string): Promise<SelectedClient | null> => {
  const row = await getClient(deps.knex, workspaceId, id);
  if (row !== null) {
    return { id, archived: row.archived_at !== null, approvalRequired: row.approval_required, timezone: row.timezone };
  }
  const { state, events } = await deps.store.load(client, id);
  if (state.status === 'none' || events[0]?.metadata.workspaceId !== workspaceId) return null;
  const { approvalRequired, timezone } = state.fields;
  return { id, archived: state.status === 'archived', approvalRequired, timezone };
};

/** Null for an account that is unknown or another workspace's. */
export const accountFromStream = async ({ deps, workspaceId }: Asking, id: string): Promise<Account | null> => {
  const { state, events } = await deps.store.load(account, id);
  if (state.status === 'none' || events[0]?.metadata.workspaceId !== workspaceId) return null;
  const { clientId, platform, status, timezone } = state;
  return { id, clientId, platform, status, timezone };
};

/** In the order of the ids; null for an account that is unknown or another workspace's. */
export const named = async (call: Asking, ids: readonly string[]): Promise<readonly (Account | null)[]> => {
  const rows = await accountsByIds(call.deps.knex, call.workspaceId, ids);
  const known = new Map(rows.map((row): [string, Account] => [row.id, { ...row, clientId: row.client_id }]));
  return Promise.all(ids.map(async (id) => known.get(id) ?? accountFromStream(call, id)));
};

const unknown = (path: string): Issue => ({ path, code: 'unknown_id', message: 'is not known' });

const refuse = (
  issues: readonly Issue[],
  code: ErrorCode = 'validation_failed',
  detail = 'The input is not valid.',
): void => {
  if (issues.length > 0) throw new Rejection(code, detail, { errors: issues });
};

/** The post's own client. @throws Rejection `validation_failed` (unknown), `client_archived` */
export const ownClient = async (call: Asking, clientId: string): Promise<SelectedClient> => {
  const found = await clientOf(call, clientId);
  if (found === null)
    throw new Rejection('validation_failed', 'The input is not valid.', { errors: [unknown('/clientId')] });
  if (found.archived) throw new Rejection('client_archived', 'The client is archived.');
  return found;
};

/**
 * @throws Rejection `validation_failed` (unknown or foreign ids), `account_not_in_client`, `account_disconnected`,
 *   `client_archived`
 */
export const select = async (call: Asking, clientId: string, body: PostBody): Promise<Selected> => {
  // Both are read at the same time; problems of the client are reported first.
  const asked = accountsOf(call, clientId, body.targetSelection);
  asked.catch(() => undefined);
  const own = await ownClient(call, clientId);
  return ofAccounts(call, own, await asked);
};

const ofAccounts = async (call: Asking, own: SelectedClient, accounts: readonly Account[]): Promise<Selected> => {
  const otherIds = [...new Set(accounts.map((one) => one.clientId))].filter((id) => id !== own.id);
  const others = await Promise.all(otherIds.map((id) => clientOf(call, id)));
  const clients = [own, ...others.flatMap((one) => (one === null ? [] : [one]))];
  const archived = clients.find((one) => one.archived);
  if (archived !== undefined) throw new Rejection('client_archived', `The client ${archived.id} is archived.`);
  const zones = new Map(clients.map((one) => [one.id, one.timezone]));
  const destinations = accounts.map(
    (one): Destination => ({
      accountId: one.id,
      clientId: one.clientId,
      platform: one.platform,
      accountTimezone: one.timezone,
      clientTimezone: zones.get(one.clientId) ?? null,
    }),
  );
  return { clients, destinations };
};

/** These accounts, with the rules for their clients. @throws Rejection `client_archived` */
export const selectAccounts =
  (accounts: readonly Account[]): typeof select =>
  async (call, clientId) =>
    ofAccounts(call, await ownClient(call, clientId), accounts);

const accountsOf = async (call: Asking, ownId: string, selection: TargetSelection): Promise<readonly Account[]> => {
  if (selection.mode === 'group') {
    const rows = await groupOf(call.deps.knex, call.workspaceId, ownId);
    const wanted = selection.platforms;
    return rows
      .filter((row) => wanted === null || wanted.includes(row.platform))
      .map((row) => ({ ...row, clientId: row.client_id }));
  }
  const sent = selection.accountIds ?? [];
  // Duplicates count once; a path leads to the first of them as it was sent.
  const ids = [...new Set(sent)];
  const found = await named(call, ids);
  const path = (index: number) => `/targets/accountIds/${sent.indexOf(ids[index] ?? '')}`;
  refuse(found.flatMap((one, index) => (one === null ? [unknown(path(index))] : [])));
  const accounts = found.flatMap((one) => (one === null ? [] : [one]));
  const issuesOf = (at: (one: Account) => boolean, code: IssueCode, message: string): readonly Issue[] =>
    accounts.flatMap((one, index) =>
      at(one) ? [{ path: path(index), code, message, accountId: one.id, platform: one.platform }] : [],
    );
  if (selection.mode === 'selection') {
    const strangers = issuesOf(
      ({ clientId }) => clientId !== ownId,
      'account_not_in_client',
      'belongs to another client than the post',
    );
    refuse(strangers, 'account_not_in_client', 'Every account of a selection must be the post’s own client’s.');
  }
  const gone = issuesOf(({ status }) => status === 'disconnected', 'account_disconnected', 'is disconnected');
  refuse(gone, 'account_disconnected', 'A selected account is disconnected.');
  return accounts;
};
