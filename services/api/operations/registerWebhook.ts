import { type WebhookCommand, webhook } from '#domain/webhook.ts';
import { Webhook, WebhookCreate } from '#schemas/http/webhook.ts';
import { operation } from '../operation.ts';
import { requireEndpoint } from '../webhooks/checks.ts';
import { webhookOf, withSecret } from '../webhooks/endpoints.ts';
import { exampleSecret, exampleWebhook } from '../webhooks/examples.ts';
import { requireRoom } from '../webhooks/room.ts';

export const registerWebhook = operation({
  id: 'registerWebhook',
  method: 'POST',
  path: '/webhooks',
  tag: 'webhooks',
  summary: 'Register a webhook endpoint',
  description:
    'The endpoint gets events from now on. Only this answer shows `secret`; a repeat with the same key shows it again for 24 hours, while it still signs. A workspace has at most 50 endpoints, unless the installation sets another limit.',
  scope: 'webhooks.manage',
  idempotent: 'required',
  cost: 1,
  etag: true,
  body: WebhookCreate,
  answer: Webhook,
  codes: ['url_not_allowed', 'unknown_event_type', 'too_many_webhooks'],
  example: {
    body: { url: exampleWebhook.url, events: exampleWebhook.events, description: exampleWebhook.description },
    data: { ...exampleWebhook, secret: exampleSecret },
  },
  handle: async (call) => {
    const { deps } = call;
    const { url, events, description, clientIds = null } = call.body;
    const created = await call.stream(webhook).create({
      command: async (): Promise<WebhookCommand> => {
        await requireEndpoint(call, { events, url, clientIds });
        return { type: 'Register', url, events, description, clientIds, keyVersion: deps.secrets.current };
      },
      reserve: (id) => requireRoom(call, id),
    });
    const row = webhookOf(created.events);
    const later = async () => (created.replayed ? (await deps.store.load(webhook, row.id)).state : created.state);
    return { data: await withSecret(call, row, later), revision: row.revision, replayed: created.replayed };
  },
});
