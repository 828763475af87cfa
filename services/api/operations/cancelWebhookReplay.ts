import { webhook } from '#domain/webhook.ts';
import { getReplays } from '#projections/webhooks/queries.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { ReplayParams, WebhookReplay } from '#schemas/http/webhook.ts';
import { operation } from '../operation.ts';
import { ownLive } from '../webhooks/endpoints.ts';
import { exampleReplay } from '../webhooks/examples.ts';
import { canceledReplay, renderReplay } from '../webhooks/replays.ts';

export const cancelWebhookReplay = operation({
  id: 'cancelWebhookReplay',
  method: 'DELETE',
  path: '/webhooks/{id}/replays/{replayId}',
  tag: 'webhooks',
  summary: 'Cancel a replay',
  description:
    'Its deliveries that are not sent yet are canceled with it. A replay that has ended is answered unchanged; if the replay ends at the same time, either outcome is possible.',
  scope: 'webhooks.manage',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: ReplayParams,
  answer: WebhookReplay,
  codes: [],
  example: { data: { ...exampleReplay, status: 'canceled' } },
  handle: async (call) => {
    const { deps, workspaceId, context, positions } = call;
    const { id: webhookId, replayId } = call.params;
    const loaded = await deps.store.load(webhook, webhookId);
    const guard = ownLive(call);
    guard(loaded);
    const row = (await getReplays(deps.knex, { workspaceId, webhookId }, [replayId])).get(replayId);
    if (row !== undefined && row.status !== 'running') return { data: renderReplay(row) };
    const command = { type: 'CancelReplay', replayId } as const;
    const { events } = await execute(deps.store, webhook, webhookId, command, context, { positions, guard, loaded });
    return { data: canceledReplay(webhookId, replayId, events, row) };
  },
});
