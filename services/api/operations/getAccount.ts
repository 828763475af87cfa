import { getAccount as queryAccount, renderAccount } from '#projections/models/accounts.ts';
import { Account } from '#schemas/http/account.ts';
import { IdParams } from '#schemas/http/common.ts';
import { exampleAccount } from '../examples.ts';
import { operation } from '../operation.ts';
import { readRow } from '../rows.ts';

export const getAccount = operation({
  id: 'getAccount',
  method: 'GET',
  path: '/accounts/{id}',
  tag: 'accounts',
  summary: 'Get a connected account',
  scope: 'accounts.read',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Account,
  codes: [],
  example: { data: exampleAccount },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const row = await readRow(call, 'account', ['workspace'], (id) => queryAccount(deps.knex, workspaceId, id));
    return { data: renderAccount(row), revision: row.revision };
  },
});
