import { webhook } from '#domain/webhook.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { IdParams } from '#schemas/http/common.ts';
import { WebhookReplay, WebhookReplayCreate } from '#schemas/http/webhook.ts';
import { operation } from '../operation.ts';
import { invalid } from '../refusal.ts';
import { lastOf } from '../rows.ts';
import { requireKnownEvents } from '../webhooks/checks.ts';
import { ownLive } from '../webhooks/endpoints.ts';
import { exampleReplay } from '../webhooks/examples.ts';
import { askedReplay, requireRoomForReplay } from '../webhooks/replays.ts';

export const replayWebhook = operation({
  id: 'replayWebhook',
  method: 'POST',
  path: '/webhooks/{id}/replays',
  tag: 'webhooks',
  summary: 'Send the events of a time range again',
  description:
    'The service sends every event of the time range again, also events from before the endpoint existed, under their original event ids. Each gets a new delivery; new events go first. At most three replays of an endpoint run at once.',
  scope: 'webhooks.manage',
  idempotent: 'accepted',
  cost: 10,
  ifMatch: true,
  params: IdParams,
  body: WebhookReplayCreate,
  answer: WebhookReplay,
  codes: ['unknown_event_type', 'too_many_replays', 'stream_full'],
  example: {
    body: { from: exampleReplay.from, to: exampleReplay.to, types: exampleReplay.types },
    data: { ...exampleReplay, progress: 0, minted: 0, readTo: null },
  },
  handle: async (call) => {
    const { body, params } = call;
    const { events, replayed } = await call.stream(webhook).act({
      guard: ownLive(call),
      optional: true,
      accept: async () => {
        const from = Date.parse(body.from);
        const to = Math.min(Date.parse(body.to ?? call.now), Date.parse(call.now));
        if (to <= from)
          throw invalid(
            body.to === undefined ? '/from' : '/to',
            'wrong_order',
            body.to === undefined ? 'must lie before now' : 'must lie after from',
          );
        requireKnownEvents(body.types, '/types');
        return {
          replayId: uuidv7(),
          from: new Date(from).toISOString(),
          to: new Date(to).toISOString(),
          types: body.types === undefined ? null : [...new Set(body.types)],
        };
      },
      command: (decided, { commandId }) => ({ type: 'RequestReplay', commandId, ...decided }),
      rule: requireRoomForReplay(call),
    });
    return { data: askedReplay(params.id, lastOf(events)), replayed };
  },
});
