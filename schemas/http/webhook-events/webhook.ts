import { Type } from 'typebox';
import { Uuid } from '#schemas/common.ts';
import { webhookEvents } from '#schemas/webhook.ts';
import { example, noClient, publicEvent } from './common.ts';

/** Events of webhook endpoints, mostly for the other endpoints. Never an address: it may hold a credential. */

const ids = { webhookId: Uuid, ...noClient };
const exampleIds = { webhookId: example.webhookId, clientId: null };
const { by, reason } = webhookEvents.WebhookDisabled.properties;

export const webhookPublic = {
  'webhook.disabled': publicEvent('An endpoint was turned off.', Type.Object({ ...ids, by, reason }), {
    ...exampleIds,
    by: 'service',
    reason: 'failing',
  }),
  'webhook.enabled': publicEvent('An endpoint was turned on again.', Type.Object(ids), exampleIds),
  'webhook.test': publicEvent(
    'A caller asked for a test delivery; only that endpoint receives it.',
    Type.Object(ids),
    exampleIds,
  ),
};
