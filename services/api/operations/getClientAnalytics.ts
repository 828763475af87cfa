import { noRollup } from '#projections/analytics/totals.ts';
import { getClient } from '#projections/clients.ts';
import { AnalyticsQuery, ClientAnalytics } from '#schemas/http/analytics.ts';
import { IdParams } from '#schemas/http/common.ts';
import { clientAnalyticsExample } from '../analytics/examples.ts';
import { questionOf, readerOf } from '../analytics/read.ts';
import { operation } from '../operation.ts';
import { readRow } from '../rows.ts';

export const getClientAnalytics = operation({
  id: 'getClientAnalytics',
  method: 'GET',
  path: '/analytics/clients/{id}',
  tag: 'analytics',
  noun: 'client',
  summary: 'A client: totals, by network, by day',
  description: 'Gains of the posts on the client’s accounts, in the window.',
  scope: 'analytics.read',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  query: AnalyticsQuery,
  answer: ClientAnalytics,
  codes: [],
  example: { data: clientAnalyticsExample },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const { id: clientId } = await readRow(call, 'client', ['workspace'], (id) =>
      getClient(deps.knex, workspaceId, id),
    );
    const { window, filters } = await questionOf(call);
    const reader = readerOf(call);
    // Of another client there is nothing in this one.
    const found =
      (filters.clientId ?? clientId) === clientId
        ? await reader.client(workspaceId, clientId, window, filters)
        : noRollup(window);
    const { asOf, totals, byPlatform, series } = found;
    return { data: { object: 'client_analytics', clientId, ...window, asOf, totals, byPlatform, series } };
  },
});
