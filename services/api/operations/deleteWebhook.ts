import { webhook } from '#domain/webhook.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Webhook } from '#schemas/http/webhook.ts';
import { operation } from '../operation.ts';
import { ownStreamToDelete } from '../rows.ts';
import { renderWebhook, webhookOf } from '../webhooks/endpoints.ts';
import { exampleWebhook } from '../webhooks/examples.ts';

export const deleteWebhook = operation({
  id: 'deleteWebhook',
  method: 'DELETE',
  path: '/webhooks/{id}',
  tag: 'webhooks',
  summary: 'Delete a webhook endpoint and its deliveries',
  description:
    'The endpoint gets no more deliveries, and its secrets stop signing. Every other operation then answers 404; deleting it again answers the same.',
  scope: 'webhooks.delete',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Webhook,
  codes: [],
  example: { data: { ...exampleWebhook, active: false, secretHint: null, secrets: [], revision: 1 } },
  handle: async (call) => {
    const { events } = await call.stream(webhook).act({
      guard: ownStreamToDelete(call, 'webhook', ({ status }) => status === 'deleted'),
      command: () => ({ type: 'Delete' }),
    });
    const row = webhookOf(events);
    return { data: renderWebhook(row, call.deps.secrets, call.now), revision: row.revision };
  },
});
