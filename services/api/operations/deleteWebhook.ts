import { webhook } from '#domain/webhook.ts';
import { execute } from '#runtime/execute.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Webhook } from '#schemas/http/webhook.ts';
import { operation } from '../operation.ts';
import { ownStream } from '../rows.ts';
import { renderWebhook, webhookOf } from '../webhooks/endpoints.ts';
import { exampleWebhook } from '../webhooks/examples.ts';

export const deleteWebhook = operation({
  id: 'deleteWebhook',
  method: 'DELETE',
  path: '/webhooks/{id}',
  tag: 'webhook',
  summary: 'Delete a webhook endpoint and its deliveries',
  description:
    'Nothing more is sent to it, and its secrets sign no more. Every other operation then answers 404; deleting it again answers the same.',
  scope: 'webhooks.delete',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Webhook,
  codes: [],
  example: { data: { ...exampleWebhook, active: false, secretHint: null, secrets: [], revision: 1 } },
  handle: async (call) => {
    const { deps, params, context, positions } = call;
    const asked = ownStream(call, 'webhook');
    // A repeat, whose answer was lost, cannot know the revision of the deletion.
    const again = ownStream({ ...call, guard: () => undefined }, 'webhook');
    const { events } = await execute(deps.store, webhook, params.id, { type: 'Delete' }, context, {
      positions,
      guard: (loaded) => (loaded.state.status === 'deleted' ? again : asked)(loaded),
    });
    const row = webhookOf(events);
    return { data: renderWebhook(row, deps.secrets, call.now), revision: row.revision };
  },
});
