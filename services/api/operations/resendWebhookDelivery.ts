import { webhook } from '#domain/webhook.ts';
import type { DeliveryRow } from '#projections/webhooks/queries.ts';
import { DeliveryParams, WebhookDelivery } from '#schemas/http/webhook.ts';
import { operation } from '../operation.ts';
import { lastOf } from '../rows.ts';
import { findDelivery, resentDelivery } from '../webhooks/deliveries.ts';
import { ownLive } from '../webhooks/endpoints.ts';
import { examplePending } from '../webhooks/examples.ts';

export const resendWebhookDelivery = operation({
  id: 'resendWebhookDelivery',
  method: 'POST',
  path: '/webhooks/{id}/deliveries/{deliveryId}/resend',
  tag: 'webhooks',
  summary: 'Send a delivery again',
  description:
    'The service sends the delivery again under the same event id, whatever its status is and also while the endpoint is off. It is due now, and its schedule of retries starts again. The count of attempts goes on.',
  scope: 'webhooks.manage',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  bodyOptional: true,
  params: DeliveryParams,
  answer: WebhookDelivery,
  codes: ['stream_full'],
  example: { data: examplePending },
  handle: async (call) => {
    const { deliveryId } = call.params;
    let found: DeliveryRow | undefined;
    const { events, replayed } = await call.stream(webhook).act({
      guard: ownLive(call),
      optional: true,
      accept: async () => {
        found = await findDelivery(call);
        return { eventTime: found.event_time };
      },
      command: ({ eventTime }, { commandId }) => ({ type: 'RequestResend', commandId, deliveryId, eventTime }),
    });
    return { data: resentDelivery(found ?? (await findDelivery(call)), lastOf(events).metadata.occurredAt), replayed };
  },
});
