import { getAccount as queryAccount } from '#projections/models/accounts.ts';
import { readPostingRules } from '#projections/queries/posting-rules.ts';
import { AccountCadence } from '#schemas/http/cadence.ts';
import { IdParams } from '#schemas/http/common.ts';
import { exampleCadence } from '../cadence/examples.ts';
import { cadenceAccountOf, showCadence } from '../cadence/show.ts';
import { operation } from '../operation.ts';
import { readRow } from '../rows.ts';

export const getAccountCadence = operation({
  id: 'getAccountCadence',
  method: 'GET',
  path: '/accounts/{id}/cadence',
  tag: 'accounts',
  summary: 'Get the posting limits of an account',
  description:
    'A post for a time at which an account would publish too often is refused with `cadence_exceeded`. The limits are checked once more when a target is due: over them it waits, first come, first served, and holds the next free time: its `scheduledAt` stays, and `retryAt` shows when it goes out, a little later if the posts before it take their time. A target that no window is large enough for fails with `cadence_never_fits` and can be retried; where an account may publish nothing at all, it waits for a day first.',
  scope: 'accounts.read',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: AccountCadence,
  codes: [],
  example: { data: exampleCadence },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const row = await readRow(call, 'account', ['workspace'], (id) => queryAccount(deps.knex, workspaceId, id));
    await call.behind(['posts']);
    const rules = await readPostingRules(deps.pool, workspaceId);
    return { data: await showCadence(call, cadenceAccountOf(row), rules) };
  },
});
