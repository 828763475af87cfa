import { getAccount as queryAccount, renderAccount } from '#projections/models/accounts.ts';
import { Account } from '#schemas/http/account.ts';
import { IdParams } from '#schemas/http/common.ts';
import { exampleAccount } from '../examples.ts';
import { operation } from '../operation.ts';
import { readRow } from '../rows.ts';

export const confirmRestoredAccount = operation({
  id: 'confirmRestoredAccount',
  method: 'POST',
  path: '/accounts/{id}/confirm-restored',
  tag: 'accounts',
  summary: 'Confirm that a person looked at an account after a restore',
  description:
    'After the service was restored from an older copy it does not know what went out since then. Call this once a person has looked at the account on its network: what the service is still to send there is not out. Posts that are older than the restore then go out to it without a question; a target whose outcome is unknown since the restore does once it is retried. A target whose post the person did find must be canceled or settled first. Without a restore it changes nothing.',
  scope: 'posts.compose',
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
