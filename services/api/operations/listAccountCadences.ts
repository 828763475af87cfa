import type { NewestFirst } from '#projections/engine/rows.ts';
import { type AccountRow, listAccounts as queryAccounts } from '#projections/models/accounts.ts';
import { readPostingRules } from '#projections/queries/posting-rules.ts';
import { AccountQuery } from '#schemas/http/account.ts';
import { AccountCadence } from '#schemas/http/cadence.ts';
import { exampleCadence } from '../cadence/examples.ts';
import { cadenceAccountOf, showCadence } from '../cadence/show.ts';
import { withinLimit } from '../client-limits.ts';
import { listPage, newestFirst } from '../cursor.ts';
import { operation } from '../operation.ts';

export const listAccountCadences = operation({
  id: 'listAccountCadences',
  method: 'GET',
  path: '/accounts/cadence',
  tag: 'accounts',
  summary: 'List the posting limits of all accounts, the newest account first',
  scope: 'accounts.read',
  idempotent: 'none',
  cost: 1,
  query: AccountQuery,
  answer: AccountCadence,
  list: true,
  codes: [],
  example: { data: exampleCadence },
  handle: async (call) => {
    await call.behind(['workspace', 'posts']);
    const { deps, workspaceId } = call;
    const { clientId, platform } = call.query;
    const filters = {
      ...withinLimit(call.principal),
      ...(clientId === undefined ? {} : { clientId }),
      ...(platform === undefined ? {} : { platforms: platform }),
    };
    const page = await listPage('listAccountCadences', call, {
      rows: (asked: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        queryAccounts(knex, workspaceId, filters, asked),
      keyOf: newestFirst,
      show: (row: AccountRow) => cadenceAccountOf(row),
    });
    const rules = await readPostingRules(deps.pool, workspaceId);
    const data = await Promise.all(page.data.map((account) => showCadence(call, account, rules)));
    return { ...page, data };
  },
});
