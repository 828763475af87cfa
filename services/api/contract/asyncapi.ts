import { Components, type ContractNode } from './components.ts';
import { deliveryHeaders, publishedEvents } from './webhooks.ts';

/** The contract of webhook deliveries, made from the table of public events. */

const DeliveryHeaders = {
  type: 'object',
  description: 'The headers of a delivery: its signatures, and which event and attempt it is.',
  properties: {
    'content-type': { type: 'string', const: 'application/json', description: 'Every body is JSON in UTF-8.' },
    ...Object.fromEntries(
      Object.entries(deliveryHeaders).map(([name, { schema, description }]) => [name, { ...schema, description }]),
    ),
  },
  required: [
    'content-type',
    ...Object.entries(deliveryHeaders)
      .filter(([, { required }]) => required)
      .map(([name]) => name),
  ],
};

export const asyncapiOf = (): ContractNode => {
  const components = new Components({ siblings: false });
  const events = publishedEvents(components);
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
        messages: Object.fromEntries(events.map(({ name }) => [name, { $ref: `#/components/messages/${name}` }])),
      },
    },
    operations: {
      deliver: {
        action: 'send',
        channel: { $ref: '#/channels/endpoint' },
        summary: 'Every state change fires an event when it commits.',
        messages: events.map(({ name }) => ({ $ref: `#/channels/endpoint/messages/${name}` })),
        security: [{ $ref: '#/components/securitySchemes/signature' }],
      },
    },
    components: {
      schemas: { DeliveryHeaders, ...components.schemas },
      securitySchemes: {
        signature: {
          type: 'httpApiKey',
          name: 'webhook-signature',
          in: 'header',
          description: 'Made with the signing secret of the endpoint; `X-Service-Signature` is a second one.',
        },
      },
      messages: Object.fromEntries(
        events.map(({ type, name, meaning, payload, example }) => [
          name,
          {
            name: type,
            title: type,
            summary: meaning,
            contentType: 'application/json',
            headers: { $ref: '#/components/schemas/DeliveryHeaders' },
            payload,
            examples: [{ payload: example }],
          },
        ]),
      ),
    },
  };
};
