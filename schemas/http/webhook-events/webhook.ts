import { Type } from 'typebox';
import { Uuid } from '#schemas/common.ts';
import { said } from '#schemas/published.ts';
import { webhookEvents } from '#schemas/webhook.ts';
import { example, noClient, publicEvent } from './common.ts';

/** Events of webhook endpoints, mostly for the other endpoints. Never an address: it may hold a credential. */

const ids = { webhookId: said(Uuid, 'Id of the endpoint.'), ...noClient };
const exampleIds = { webhookId: example.webhookId, clientId: null };
const { by, reason } = webhookEvents.WebhookDisabled.properties;
const disabled = {
  ...ids,
  by: said(by, 'Who turned it off.'),
  reason: said(reason, 'Why it was turned off.'),
};

export const webhookPublic = {
  'webhook.disabled': publicEvent('A caller or the service turned an endpoint off.', Type.Object(disabled), {
    ...exampleIds,
    by: 'service',
    reason: 'failing',
  }),
  'webhook.enabled': publicEvent('A caller turned an endpoint on again.', Type.Object(ids), exampleIds),
  'webhook.test': publicEvent(
    'A caller asked for a test delivery; only that endpoint receives it.',
    Type.Object(ids),
    exampleIds,
  ),
};
