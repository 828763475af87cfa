import { Envelope, eventTypes, publicEvents } from '#schemas/http/webhook-events.ts';

/** The contract of webhook deliveries, made from the table of public events. */

type Json = Record<string, unknown>;

const nameOf = (type: string): string =>
  type.replace(/(^|[._])([a-z])/g, (_all, _dot: string, letter: string) => letter.toUpperCase());

const deliveryHeaders: Json = {
  type: 'object',
  properties: {
    'content-type': { type: 'string', const: 'application/json' },
    'webhook-id': { type: 'string', format: 'uuid', description: 'The id of the envelope.' },
    'webhook-timestamp': { type: 'string', pattern: '^[0-9]+$', description: 'Unix seconds of this attempt.' },
    'webhook-signature': {
      type: 'string',
      description:
        'Standard Webhooks: `v1,` and the base64 of an HMAC-SHA256 over `<webhook-id>.<webhook-timestamp>.<body>`, one entry per valid secret, separated by spaces. The key is the secret’s part after `whsec_`, base64-decoded.',
    },
    'X-Service-Signature': {
      type: 'string',
      description:
        '`t=<unix-seconds>,v1=<hex>`: an HMAC-SHA256 over `<t>.<body>`, one `v1` per valid secret. The key is the whole secret as it was shown.',
    },
    'X-Service-Attempt': {
      type: 'string',
      pattern: '^[1-9][0-9]*$',
      description: 'Counts attempts, from 1, and goes on counting when the delivery is sent again.',
    },
    'X-Consistency-Token': {
      type: 'string',
      description:
        'Sent with a GET of the API, it makes the answer wait until it shows the state change of this event.',
    },
  },
  required: [
    'content-type',
    'webhook-id',
    'webhook-timestamp',
    'webhook-signature',
    'X-Service-Signature',
    'X-Service-Attempt',
  ],
};

/** Id and instant of every example. Both are made up, like the data of the examples. */
const exampleEnvelope = { id: '6b6ed2cc-7cd8-5b5f-9fd5-0f6b4f7e0001', created: '2026-02-02T08:00:01.412Z' };

export const asyncapiOf = (): Json => {
  const names = eventTypes.map(nameOf);
  const messages = Object.fromEntries(
    Object.entries(publicEvents).map(([type, { meaning, data, example }]) => [
      nameOf(type),
      {
        name: type,
        title: type,
        summary: meaning,
        contentType: 'application/json',
        headers: { $ref: '#/components/schemas/DeliveryHeaders' },
        payload: JSON.parse(
          JSON.stringify(Envelope(type, data), (name, value) => (name === 'expects' ? undefined : value)),
        ) as Json,
        examples: [{ payload: { id: exampleEnvelope.id, type, created: exampleEnvelope.created, data: example } }],
      },
    ]),
  );
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Postline events',
      version: '1.0.0',
      description:
        'Signed webhook deliveries: each an HTTP POST to an endpoint you registered, at least once, in any order. Dedupe on the envelope’s id.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    defaultContentType: 'application/json',
    channels: {
      endpoint: {
        address: '{endpointUrl}',
        description: 'The HTTPS address you registered.',
        parameters: { endpointUrl: { description: 'Your endpoint.' } },
        messages: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/messages/${name}` }])),
      },
    },
    operations: {
      deliver: {
        action: 'send',
        channel: { $ref: '#/channels/endpoint' },
        summary: 'Every state change fires an event when it commits.',
        messages: names.map((name) => ({ $ref: `#/channels/endpoint/messages/${name}` })),
      },
    },
    components: { schemas: { DeliveryHeaders: deliveryHeaders }, messages },
  };
};
