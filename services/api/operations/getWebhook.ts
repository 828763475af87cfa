import { IdParams } from '#schemas/http/common.ts';
import { Webhook } from '#schemas/http/webhook.ts';
import { operation } from '../operation.ts';
import { readWebhook, renderWebhook } from '../webhooks/endpoints.ts';
import { exampleWebhook } from '../webhooks/examples.ts';

export const getWebhook = operation({
  id: 'getWebhook',
  method: 'GET',
  path: '/webhooks/{id}',
  tag: 'webhooks',
  summary: 'Get a webhook endpoint',
  scope: 'webhooks.read',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Webhook,
  codes: [],
  example: { data: exampleWebhook },
  handle: async (call) => {
    const row = await readWebhook(call);
    return { data: renderWebhook(row, call.deps.secrets, call.now), revision: row.revision };
  },
});
