import { account } from '#domain/account.ts';
import { rowOf } from '#projections/engine/model.ts';
import type { NewestFirst } from '#projections/engine/rows.ts';
import {
  accounts,
  getAccount as queryAccount,
  listAccounts as queryAccounts,
  renderAccount,
} from '#projections/models/accounts.ts';
import { Account, AccountQuery } from '#schemas/http/account.ts';
import { AsOfQuery, IdParams } from '#schemas/http/common.ts';
import { withinLimit } from '../call/access.ts';
import { listPage, newestFirst } from '../call/cursor.ts';
import { exampleAccount } from '../call/examples.ts';
import { operation, type Tag } from '../call/operation.ts';
import { readRow, writtenRow } from '../call/rows.ts';
import { answerAccountThen, listAccountsThen } from '../past/things.ts';

export const accountsTag: Tag = { place: 30, name: 'accounts', noun: 'account', about: 'Connected social accounts.' };

export const listAccounts = operation({
  id: 'listAccounts',
  method: 'GET',
  path: '/accounts',
  tag: accountsTag,
  summary: 'List connected accounts and their health, newest first',
  description: 'Disconnected accounts stay in the list.',
  scope: 'accounts.read',
  limited: 'filtered',
  idempotent: 'none',
  cost: 1,
  query: AccountQuery,
  answer: Account,
  list: true,
  codes: ['history_too_long'],
  example: { data: exampleAccount },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return listAccountsThen(call, call.query.asOf);
    await call.behind(['workspace']);
    const { clientId, platform } = call.query;
    const filters = {
      ...withinLimit(call.principal),
      ...(clientId === undefined ? {} : { clientId }),
      ...(platform === undefined ? {} : { platforms: platform }),
    };
    return listPage('listAccounts', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        queryAccounts(knex, call.workspaceId, filters, page),
      keyOf: newestFirst,
      show: renderAccount,
    });
  },
});

export const getAccount = operation({
  id: 'getAccount',
  method: 'GET',
  path: '/accounts/{id}',
  tag: accountsTag,
  summary: 'Get a connected account',
  scope: 'accounts.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  query: AsOfQuery,
  answer: Account,
  codes: ['history_too_long'],
  example: { data: exampleAccount },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return answerAccountThen(call, call.query.asOf);
    const { deps, workspaceId } = call;
    const row = await readRow(call, 'account', ['workspace'], (id) => queryAccount(deps.knex, workspaceId, id));
    return { data: renderAccount(row), revision: row.revision };
  },
});

const reason = 'Disconnected on request.';
const checkedAt = '2026-02-01T08:00:00.000Z';

export const disconnectAccount = operation({
  id: 'disconnectAccount',
  method: 'POST',
  path: '/accounts/{id}/disconnect',
  tag: accountsTag,
  summary: 'Disconnect an account',
  description:
    'Nothing is published to the account any more. The service cancels its targets that are pending, held or rate limited shortly after, and those that the network’s own scheduler has, or that are being handed over to it, once the network deleted them; another attempt under way may still end as published. The account keeps its id and its history: a person connects it again through a connect link, which brings no canceled target back. Disconnecting a disconnected account answers it unchanged.',
  scope: 'accounts.connect',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Account,
  codes: ['idempotency_key_reused'],
  example: {
    data: {
      ...exampleAccount,
      status: 'disconnected',
      health: { state: 'disconnected', reason, checkedAt },
      updatedAt: checkedAt,
      revision: 1,
    },
  },
  handle: async (call) => {
    // If we die after the append, the log carries the event to the outcomes process, which cancels the targets.
    const { events, revision, replayed } = await call
      .stream(account)
      .act({ command: () => ({ type: 'Disconnect', reason }) });
    return { data: renderAccount(writtenRow(rowOf(accounts, events))), revision, replayed };
  },
});

export const confirmRestoredAccount = operation({
  id: 'confirmRestoredAccount',
  method: 'POST',
  path: '/accounts/{id}/confirm-restored',
  tag: accountsTag,
  summary: 'Confirm that a person looked at an account after a restore',
  description:
    'After the service was restored from an older copy it does not know what went out since then. Call this once a person has looked at the account on its network: what the service is still to send there is not out. Posts that are older than the restore then go out to it without a question; a target whose outcome is unknown since the restore does once it is retried. A target whose post the person did find must be canceled or settled first. Without a restore it changes nothing.',
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: Account,
  codes: [],
  example: { data: exampleAccount },
  handle: async (call) => {
    const { deps, workspaceId, principal } = call;
    const row = await readRow(call, 'account', ['workspace'], (id) => queryAccount(deps.knex, workspaceId, id));
    if ((await deps.restores?.newest()) != null) await deps.restores?.trust(row.id, principal.actor.id);
    return { data: renderAccount(row), revision: row.revision };
  },
});
