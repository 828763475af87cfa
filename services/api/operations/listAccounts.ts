import type { NewestFirst } from '#projections/engine/rows.ts';
import { listAccounts as queryAccounts, renderAccount } from '#projections/models/accounts.ts';
import { Account, AccountQuery } from '#schemas/http/account.ts';
import { withinLimit } from '../client-limits.ts';
import { listPage, newestFirst } from '../cursor.ts';
import { exampleAccount } from '../examples.ts';
import { operation } from '../operation.ts';

export const listAccounts = operation({
  id: 'listAccounts',
  method: 'GET',
  path: '/accounts',
  tag: 'accounts',
  summary: 'List connected accounts and their health, newest first',
  description: 'Disconnected accounts stay in the list.',
  scope: 'accounts.read',
  idempotent: 'none',
  cost: 1,
  query: AccountQuery,
  answer: Account,
  list: true,
  codes: [],
  example: { data: exampleAccount },
  handle: async (call) => {
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
