import { type DeliveryFilters, type DeliveryKey, listDeliveries } from '#projections/webhooks/queries.ts';
import { IdParams } from '#schemas/http/common.ts';
import { DeliveryQuery, WebhookDelivery } from '#schemas/http/webhook.ts';
import { topics } from '#schemas/topics.ts';
import { listPage } from '../cursor.ts';
import { operation } from '../operation.ts';
import { filtersOf } from '../posts/body.ts';
import { requireTypeFilter } from '../webhooks/checks.ts';
import { renderDelivery } from '../webhooks/deliveries.ts';
import { readWebhook } from '../webhooks/endpoints.ts';
import { exampleDelivery } from '../webhooks/examples.ts';

export const listWebhookDeliveries = operation({
  id: 'listWebhookDeliveries',
  method: 'GET',
  path: '/webhooks/{id}/deliveries',
  tag: 'webhooks',
  summary: 'List the deliveries of an endpoint, newest first',
  description: 'Each delivery has its attempts so far. Deliveries are kept for 30 days.',
  scope: 'webhooks.read',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  query: DeliveryQuery,
  answer: WebhookDelivery,
  list: true,
  codes: [],
  example: { data: exampleDelivery },
  handle: async (call) => {
    const { deps, workspaceId, principal, query } = call;
    requireTypeFilter(query.eventType);
    // Any write of the caller may have made a delivery.
    await call.behind(topics, 'dispatcher');
    const { active, id: webhookId } = await readWebhook(call);
    const { limit: _limit, cursor: _cursor, status: statuses, ...more } = query;
    const filters: DeliveryFilters = filtersOf({ ...more, statuses });
    // A cursor is valid for one endpoint.
    const bound = { ...query, webhookId };
    return listPage(
      'listWebhookDeliveries',
      { deps, workspaceId, principal, query: bound },
      {
        rows: (page: { readonly after: DeliveryKey | null; readonly limit: number }, knex) =>
          listDeliveries(knex, { workspaceId, webhookId }, filters, page),
        keyOf: (row) => ({ sortKey: row.sort_key, id: row.id }),
        show: (row) => renderDelivery(row, active),
      },
    );
  },
});
