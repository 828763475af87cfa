import type { AccountRollup } from '#projections/analytics/rollup.ts';
import { noAccountRollup } from '#projections/analytics/totals.ts';
import { getAccount } from '#projections/models/accounts.ts';
import { AccountAnalytics, AccountAnalyticsQuery } from '#schemas/http/analytics.ts';
import { IdParams } from '#schemas/http/common.ts';
import { accountAnalyticsExample } from '../analytics/examples.ts';
import { questionOf, readerOf } from '../analytics/read.ts';
import { operation } from '../operation.ts';
import { readRow } from '../rows.ts';

/** Absent when it was never fetched. */
const demographicsOf = ({ demographics }: AccountRollup) => (demographics === undefined ? {} : { demographics });

const shownOf = ({ totals, series, audience }: AccountRollup) => ({ totals, series, audience });

export const getAccountAnalytics = operation({
  id: 'getAccountAnalytics',
  method: 'GET',
  path: '/analytics/accounts/{id}',
  tag: 'analytics',
  noun: 'account',
  summary: 'Figures of an account: totals, by day, audience',
  description:
    'What the posts of the account gained in the window, its followers by the last snapshot of each day, and its audience. Gains, null, 0 and provisional days mean what they mean in GET /analytics/overview. The days of `audience` are those of the network, which reports a day after its end. `demographics` is the newest snapshot not after `to`, also one from before the window. With filters that the account does not fit every figure is null.',
  scope: 'analytics.read',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  query: AccountAnalyticsQuery,
  answer: AccountAnalytics,
  codes: [],
  example: { data: accountAnalyticsExample },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const account = await readRow(call, 'account', ['workspace'], (id) => getAccount(deps.knex, workspaceId, id));
    const { window, previous, filters } = await questionOf(call);
    const { clientId, socialAccountId, platforms } = filters;
    const fits =
      (clientId ?? account.client_id) === account.client_id &&
      (socialAccountId ?? account.id) === account.id &&
      (platforms?.includes(account.platform) ?? true);
    const reader = readerOf(call);
    const found = fits
      ? await reader.account(workspaceId, account.id, window, { previous })
      : { ...noAccountRollup(window), previous: previous === null ? null : noAccountRollup(previous) };
    return {
      data: {
        object: 'account_analytics',
        socialAccountId: account.id,
        platform: account.platform,
        ...window,
        asOf: found.asOf,
        ...shownOf(found),
        ...demographicsOf(found),
        ...(previous === null || found.previous === null
          ? {}
          : { previous: { ...previous, ...shownOf(found.previous) } }),
      },
    };
  },
});
