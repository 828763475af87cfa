import { webhook } from '#domain/webhook.ts';
import { noteRotation } from '#projections/webhooks/rotations.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Webhook, WebhookSecretRotation } from '#schemas/http/webhook.ts';
import { operation } from '../operation.ts';
import { ownLive, webhookOf, withSecret } from '../webhooks/endpoints.ts';
import { exampleSecret, exampleWebhook } from '../webhooks/examples.ts';

/** The overlap begins when the rotation is stored: a repeat that comes late does not cut the former secret short. */
export const rotateWebhookSecret = operation({
  id: 'rotateWebhookSecret',
  method: 'POST',
  path: '/webhooks/{id}/rotate-secret',
  tag: 'webhooks',
  summary: 'Give a webhook endpoint a new signing secret',
  description:
    'The former secret goes on signing beside the new one for 24 hours; at most five secrets sign at once. Only this answer shows `secret`; a repeat with the same key shows it again for 24 hours, while it still signs.',
  scope: 'webhooks.manage',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  bodyOptional: true,
  params: IdParams,
  body: WebhookSecretRotation,
  answer: Webhook,
  codes: ['too_many_secrets'],
  example: { body: {}, data: { ...exampleWebhook, secret: exampleSecret, revision: 1 } },
  handle: async (call) => {
    const { deps, params } = call;
    const { state, events, replayed } = await call.stream(webhook).act({
      guard: ownLive(call),
      command: (_decided, { commandId, now }) => ({
        type: 'RotateSecret',
        commandId,
        now,
        keyVersion: deps.secrets.current,
      }),
    });
    const row = webhookOf(events);
    // Before the answer, so that whatever is claimed after it carries both secrets. If we die before this, nobody has the
    // new secret yet: the dispatcher folds the rotation, and a repeat notes it again.
    faultPoint('webhook:before-rotation');
    await noteRotation(deps.pool, { endpointId: row.id, revision: row.revision, secrets: row.secrets });
    const later = async () => (replayed ? (await deps.store.load(webhook, params.id)).state : state);
    return { data: await withSecret(call, row, later), revision: row.revision, replayed };
  },
});
