import { DeliveryParams, WebhookDelivery } from '#schemas/http/webhook.ts';
import { operation } from '../operation.ts';
import { readDelivery, renderDelivery } from '../webhooks/deliveries.ts';
import { readWebhook } from '../webhooks/endpoints.ts';
import { exampleDelivery } from '../webhooks/examples.ts';

export const getWebhookDelivery = operation({
  id: 'getWebhookDelivery',
  method: 'GET',
  path: '/webhooks/{id}/deliveries/{deliveryId}',
  tag: 'webhooks',
  summary: 'Get a delivery with its attempts',
  scope: 'webhooks.read',
  idempotent: 'none',
  cost: 1,
  params: DeliveryParams,
  answer: WebhookDelivery,
  codes: [],
  example: { data: exampleDelivery },
  handle: async (call) => {
    const { active } = await readWebhook(call);
    return { data: renderDelivery(await readDelivery(call), active) };
  },
});
