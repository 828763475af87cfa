import { webhook } from '#domain/webhook.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Webhook, WebhookUpdate } from '#schemas/http/webhook.ts';
import { operation } from '../operation.ts';
import { requireEndpoint } from '../webhooks/checks.ts';
import { ownLive, renderWebhook, webhookOf } from '../webhooks/endpoints.ts';
import { exampleWebhook } from '../webhooks/examples.ts';

export const updateWebhook = operation({
  id: 'updateWebhook',
  method: 'PATCH',
  path: '/webhooks/{id}',
  tag: 'webhooks',
  summary: 'Change a webhook endpoint, turn it off or on',
  description:
    'Only the members that are sent change. When you turn on an endpoint that the service disabled, it gets the events it missed, at most 72 hours back. When you turn on an endpoint that you turned off, it does not: use a replay.',
  scope: 'webhooks.manage',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  merge: true,
  params: IdParams,
  body: WebhookUpdate,
  answer: Webhook,
  codes: ['url_not_allowed', 'unknown_event_type', 'stream_full'],
  example: { body: { active: false }, data: { ...exampleWebhook, active: false, disabledReason: 'requested' } },
  handle: async (call) => {
    const { deps, body } = call;
    // Turning an endpoint off is never refused: an endpoint whose stream is full must still come to rest.
    const { active, ...others } = body;
    const optional = active !== false || Object.keys(others).length > 0;
    const { events } = await call.stream(webhook).act({
      guard: ownLive(call),
      accept: () => requireEndpoint(call, body),
      command: () => ({ type: 'Update', changes: body }),
      optional,
    });
    const row = webhookOf(events);
    return { data: renderWebhook(row, deps.secrets, call.now), revision: row.revision };
  },
});
