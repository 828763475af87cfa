import { Envelope, publicEvents } from '#schemas/http/webhook-events.ts';
import { Named } from '#schemas/published.ts';
import type { Components, ContractNode } from './components.ts';

/** The events of webhooks, as both contracts publish them. */

/** `post.partially_published` → `PostPartiallyPublished`. */
export const eventName = (type: string): string =>
  type.replace(/(^|[._])([a-z])/g, (_all, _dot: string, letter: string) => letter.toUpperCase());

/** Id and instant of every example. Both are made up, like the data of the examples. */
const exampleEnvelope = { id: '6b6ed2cc-7cd8-5b5f-9fd5-0f6b4f7e0001', created: '2026-02-02T08:00:01.412Z' };

export interface PublishedEvent {
  readonly type: string;
  /** `PostPublished`: its envelope is `PostPublishedEvent`. */
  readonly name: string;
  readonly meaning: string;
  readonly payload: ContractNode;
  readonly example: ContractNode;
}

export const publishedEvents = (components: Components): readonly PublishedEvent[] =>
  Object.entries(publicEvents).map(([type, { meaning, data, example }]) => {
    const name = eventName(type);
    return {
      type,
      name,
      meaning,
      payload: components.published(
        Named(`${name}Event`, {
          ...Envelope(type, Named(`${name}Data`, { description: meaning, ...data })),
          description: meaning,
        }),
      ),
      example: { id: exampleEnvelope.id, type, created: exampleEnvelope.created, data: example },
    };
  });

/** Names and words of the headers of a delivery, and whether every delivery has them. */
export const deliveryHeaders: Readonly<
  Record<string, { readonly schema: ContractNode; readonly description: string; readonly required: boolean }>
> = {
  'webhook-id': {
    schema: { type: 'string', format: 'uuid' },
    description: 'The id of the envelope.',
    required: true,
  },
  'webhook-timestamp': {
    schema: { type: 'string', pattern: '^[0-9]+$' },
    description: 'Unix seconds of this attempt.',
    required: true,
  },
  'webhook-signature': {
    schema: { type: 'string' },
    description:
      'Standard Webhooks: `v1,` and the base64 of an HMAC-SHA256 over `<webhook-id>.<webhook-timestamp>.<body>`, one entry per valid secret, separated by spaces. The key is the secret’s part after `whsec_`, base64-decoded.',
    required: true,
  },
  'X-Service-Signature': {
    schema: { type: 'string' },
    description:
      '`t=<unix-seconds>,v1=<hex>`: an HMAC-SHA256 over `<t>.<body>`, one `v1` per valid secret. The key is the whole secret as it was shown.',
    required: true,
  },
  'X-Service-Attempt': {
    schema: { type: 'string', pattern: '^[1-9][0-9]*$' },
    description: 'Counts attempts, from 1, and goes on counting when the delivery is sent again.',
    required: true,
  },
  'X-Consistency-Token': {
    schema: { type: 'string' },
    description: 'Sent with a GET of the API, it makes the answer wait until it shows the state change of this event.',
    required: false,
  },
};

/**
 * A call for each type of event, made by us to a registered endpoint: the members `webhooks` and
 * `components.pathItems`. Generators of clients take a path item that stands in `webhooks` itself for an operation of
 * the api.
 */
export const webhooksOf = (
  components: Components,
): { readonly webhooks: ContractNode; readonly pathItems: ContractNode } => {
  const parameters = Object.entries(deliveryHeaders).map(([name, one]) => ({ name, in: 'header', ...one }));
  const events = publishedEvents(components);
  const pathItems = Object.fromEntries(
    events.map(({ name, meaning, payload, example }) => [
      name,
      {
        post: {
          operationId: `on${name}`,
          tags: ['events'],
          summary: meaning,
          description:
            'A signed delivery, at least once, in any order: verify a signature, and deduplicate by the id of the envelope.',
          security: [],
          parameters,
          requestBody: { required: true, content: { 'application/json': { schema: payload, example } } },
          responses: {
            '2XX': { description: 'The delivery is accepted.' },
            '4XX': { description: 'The delivery is sent again later; 410 turns the endpoint off.' },
            '5XX': { description: 'The delivery is sent again later.' },
          },
        },
      },
    ]),
  );
  const webhooks = Object.fromEntries(
    events.map(({ type, name }) => [type, { $ref: `#/components/pathItems/${name}` }]),
  );
  return { webhooks, pathItems };
};
