import { account } from '#domain/account.ts';
import { rowOf } from '#projections/engine/model.ts';
import { accounts, renderAccount } from '#projections/models/accounts.ts';
import { Account } from '#schemas/http/account.ts';
import { IdParams } from '#schemas/http/common.ts';
import { exampleAccount } from '../examples.ts';
import { operation } from '../operation.ts';
import { writtenRow } from '../rows.ts';

const reason = 'Disconnected on request.';
const checkedAt = '2026-02-01T08:00:00.000Z';

export const disconnectAccount = operation({
  id: 'disconnectAccount',
  method: 'POST',
  path: '/accounts/{id}/disconnect',
  tag: 'accounts',
  summary: 'Disconnect an account',
  description:
    'Nothing is published to the account any more. The service cancels its targets that are pending, held or rate limited shortly after, and those that the network’s own scheduler has, or that are being handed over to it, once the network deleted them; another attempt under way may still end as published. The account keeps its id and its history: a person connects it again through a connect link, which brings no canceled target back. Disconnecting a disconnected account answers it unchanged.',
  scope: 'accounts.connect',
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
