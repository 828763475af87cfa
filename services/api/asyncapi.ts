import { Envelope, webhookEvents } from '#schemas/http/webhook.ts';

/** The contract of what we send, made from the table of webhook events. */

type Json = Record<string, unknown>;

const nameOf = (type: string): string =>
  type.replace(/(^|[._])([a-z])/g, (_all, _dot: string, letter: string) => letter.toUpperCase());

const signatureHeaders: Json = {
  type: 'object',
  properties: {
    'webhook-id': { type: 'string', format: 'uuid', description: 'The id of the envelope.' },
    'webhook-timestamp': { type: 'string', description: 'Unix seconds of this attempt.' },
    'webhook-signature': { type: 'string', description: 'Standard Webhooks: one entry per valid secret.' },
    'X-Service-Signature': { type: 'string', description: 't=<unix-seconds>,v1=<hex>, one v1 per valid secret.' },
    'X-Service-Attempt': { type: 'string', description: 'Counts attempts, from 1.' },
  },
};

export const asyncapiOf = (): Json => {
  const names = Object.keys(webhookEvents).map((type) => nameOf(type));
  const messages = Object.fromEntries(
    Object.entries(webhookEvents).map(([type, { meaning, data }]) => [
      nameOf(type),
      {
        name: type,
        title: type,
        summary: meaning,
        contentType: 'application/json',
        headers: signatureHeaders,
        payload: JSON.parse(JSON.stringify(Envelope(type, data))) as Json,
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
    components: { messages },
  };
};
