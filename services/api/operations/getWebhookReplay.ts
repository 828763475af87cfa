import { ReplayParams, WebhookReplay } from '#schemas/http/webhook.ts';
import { operation } from '../operation.ts';
import { readWebhook } from '../webhooks/endpoints.ts';
import { exampleReplay } from '../webhooks/examples.ts';
import { readReplay, renderReplay } from '../webhooks/replays.ts';

export const getWebhookReplay = operation({
  id: 'getWebhookReplay',
  method: 'GET',
  path: '/webhooks/{id}/replays/{replayId}',
  tag: 'webhooks',
  summary: 'Get the progress of a replay',
  scope: 'webhooks.manage',
  idempotent: 'none',
  cost: 1,
  params: ReplayParams,
  answer: WebhookReplay,
  codes: [],
  example: { data: exampleReplay },
  handle: async (call) => {
    await readWebhook(call);
    return { data: renderReplay(await readReplay(call)) };
  },
});
