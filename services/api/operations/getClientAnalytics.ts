import { getClient } from '#projections/models/clients.ts';
import { BoardQuery, ClientAnalytics } from '#schemas/http/analytics.ts';
import { IdParams } from '#schemas/http/common.ts';
import { boardOf } from '../analytics/board.ts';
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
  summary: 'Figures of a client: totals, by network, by day',
  description:
    'What the posts on the client’s accounts gained in the window: in total, on each network, on each day. Gains, null, 0 and provisional days mean what they mean in GET /analytics/overview. With a `clientId` of another client every figure is null.',
  scope: 'analytics.read',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  query: BoardQuery,
  answer: ClientAnalytics,
  codes: [],
  example: { data: clientAnalyticsExample },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const { id: clientId } = await readRow(call, 'client', ['workspace'], (id) =>
      getClient(deps.knex, workspaceId, id),
    );
    const asked = await questionOf(call);
    const question = { ...asked, filters: { ...asked.filters, clientId } };
    const reader = readerOf(call);
    // A filter for another client matches nothing within this client.
    const fits = (asked.filters.clientId ?? clientId) === clientId;
    const board = await boardOf(
      call,
      question,
      call.query.breakdown === 'platform',
      fits ? (window, beside) => reader.client(workspaceId, clientId, window, question.filters, beside) : null,
    );
    return { data: { object: 'client_analytics', clientId, ...board } };
  },
});
