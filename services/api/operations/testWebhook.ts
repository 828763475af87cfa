import { webhook } from '#domain/webhook.ts';
import { IdParams } from '#schemas/http/common.ts';
import { WebhookDelivery, WebhookTestSend } from '#schemas/http/webhook.ts';
import { operation } from '../operation.ts';
import { lastOf } from '../rows.ts';
import { requireEventType } from '../webhooks/checks.ts';
import { testDelivery } from '../webhooks/deliveries.ts';
import { ownLive } from '../webhooks/endpoints.ts';
import { examplePending } from '../webhooks/examples.ts';

export const testWebhook = operation({
  id: 'testWebhook',
  method: 'POST',
  path: '/webhooks/{id}/test',
  tag: 'webhooks',
  summary: 'Send a signed test delivery',
  description:
    'The service sends the example data of the type once, whether or not the endpoint subscribes to it and also while the endpoint is off. The answer is the queued delivery; GET it to see its outcome.',
  scope: 'webhooks.manage',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  bodyOptional: true,
  params: IdParams,
  body: WebhookTestSend,
  answer: WebhookDelivery,
  codes: ['unknown_event_type', 'stream_full'],
  example: { body: { eventType: 'webhook.test' }, data: examplePending },
  handle: async (call) => {
    const { events, replayed } = await call.stream(webhook).act({
      guard: ownLive(call),
      optional: true,
      accept: async () => {
        requireEventType(call.body.eventType, '/eventType');
        return { eventType: call.body.eventType };
      },
      command: ({ eventType }, { commandId }) => ({ type: 'RequestTest', commandId, eventType }),
    });
    return { data: testDelivery(call.params.id, lastOf(events)), replayed };
  },
});
