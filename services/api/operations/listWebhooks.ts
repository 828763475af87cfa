import type { NewestFirst } from '#projections/engine/rows.ts';
import { listWebhooks as rowsOf } from '#projections/models/webhook-endpoints.ts';
import { Webhook, WebhookQuery } from '#schemas/http/webhook.ts';
import { listPage, newestFirst } from '../cursor.ts';
import { operation } from '../operation.ts';
import { renderWebhook } from '../webhooks/endpoints.ts';
import { exampleWebhook } from '../webhooks/examples.ts';

export const listWebhooks = operation({
  id: 'listWebhooks',
  method: 'GET',
  path: '/webhooks',
  tag: 'webhooks',
  summary: 'List webhook endpoints, newest first',
  scope: 'webhooks.read',
  idempotent: 'none',
  cost: 1,
  query: WebhookQuery,
  answer: Webhook,
  list: true,
  codes: [],
  example: { data: exampleWebhook },
  handle: async (call) => {
    await call.behind(['webhooks']);
    const { deps, workspaceId, now } = call;
    return listPage('listWebhooks', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        rowsOf(knex, workspaceId, page),
      keyOf: newestFirst,
      show: (row) => renderWebhook(row, deps.secrets, now),
    });
  },
});
