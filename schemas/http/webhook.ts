import { Type } from 'typebox';
import { Instant, maxLimitClients, Nullable, Uuid } from '#schemas/common.ts';
import { ClosedEnum, Named, OpenEnum, said, shownAs } from '#schemas/published.ts';
import { DisableReason } from '#schemas/webhook.ts';
import { asOfQuery, Defaulted, InstantInput, Maybe, paging, Resettable, stamps, UuidInput } from './common.ts';
import { eventFilters, eventTypes } from './webhook-events.ts';

/** Webhook endpoints, their deliveries and their replays, as callers send them and see them. */

const Url = Type.String({
  minLength: 1,
  maxLength: 2048,
  description:
    'The address that events are sent to: https on port 443 of a public host. Redirects are not followed; it is stored unchanged.',
  examples: ['https://hooks.agency.example/postline'],
});
const typeWords = 'A type of event.';
const filterWords =
  'Which events an endpoint gets: one exact type, `<noun>.*` for all types with this beginning, or `*` for all types.';
/** Other values are refused with a code of their own, so the contract lists them and the schema does not. */
const Listed = (words: string) => Type.String({ minLength: 1, maxLength: 100, description: words });
const EventTypeInput = Named('EventTypeInput', shownAs(Listed(typeWords), { enum: eventTypes }));
const EventFilterInput = Named('EventFilterInput', shownAs(Listed(filterWords), { enum: eventFilters }));
const EventType = Named(
  'EventType',
  shownAs(Type.String({ description: typeWords }), { enum: eventTypes, open: true }),
);
const EventFilter = Named(
  'EventFilter',
  shownAs(Type.String({ description: filterWords }), { enum: eventFilters, open: true }),
);
const Events = Type.Array(EventFilterInput, {
  minItems: 1,
  maxItems: 100,
  description: 'The events that the endpoint gets: those that match any entry. A repeated entry counts once.',
  examples: [['post.published', 'target.*']],
});
const Description = Type.String({
  maxLength: 500,
  description: 'A note of your own about the endpoint.',
  examples: ['Tells the newsroom'],
});

const limitWords =
  'The clients to whose events the endpoint is limited: it gets events that name one of them in `clientId` of their data, and `media.ready` of their assets; events that belong to no client it does not get. A post whose targets are on accounts of several clients is reported as its own client’s, with the counts of all targets; each target as its account’s client’s.';
const ClientLimit = Type.Array(UuidInput, {
  minItems: 1,
  maxItems: maxLimitClients,
  description: `${limitWords} A repeated client counts once. Null: all events of the workspace.`,
});

export const WebhookCreate = Named(
  'WebhookCreate',
  Type.Object(
    {
      url: Url,
      events: Events,
      description: Defaulted(Description, null),
      clientIds: Maybe(ClientLimit),
    },
    { description: 'A webhook endpoint as it is registered.' },
  ),
);

export const WebhookUpdate = Named(
  'WebhookUpdate',
  Type.Object(
    {
      url: Maybe(Url),
      events: Maybe(Events),
      active: Maybe(
        Type.Boolean({
          description:
            'False turns the endpoint off: nothing is sent to it, and the events of this time are not sent later either. True turns it on.',
        }),
      ),
      description: Resettable(Description, null),
      clientIds: Resettable(ClientLimit, null),
    },
    { description: 'Changes of a webhook endpoint: only the members that are sent change.' },
  ),
);

export const WebhookQuery = Type.Object({ ...paging, ...asOfQuery });

const Secret = Named(
  'WebhookSecret',
  Type.Object(
    {
      createdAt: said(Instant, 'When it was made, by the registration or by a rotation.'),
      expiresAt: said(Nullable(Instant), 'When it stops signing; null for the newest, which has no end.'),
    },
    { description: 'A signing secret, without the secret itself.' },
  ),
);

export const Webhook = Named(
  'Webhook',
  Type.Object(
    {
      id: said(Uuid, 'Id of the endpoint.'),
      object: Type.Literal('webhook', { description: 'The kind of resource.' }),
      url: Type.String({
        description: 'The address that events are sent to, as it was registered.',
        examples: ['https://hooks.agency.example/postline'],
      }),
      events: Type.Array(EventFilter, { description: 'The events that it gets: those that match any entry.' }),
      active: Type.Boolean({ description: 'Whether events are sent to it.' }),
      description: said(Nullable(Type.String()), 'Your note about the endpoint; null: none.'),
      clientIds: said(
        Nullable(Type.Array(Uuid)),
        'The clients to whose events it is limited; null: all events of the workspace.',
      ),
      disabledReason: said(Nullable(DisableReason), 'Why it is off; null while it is on.'),
      secretHint: said(
        Nullable(Type.String()),
        'The last 4 characters of the newest secret, to tell which one it is; null once the endpoint is deleted.',
        { examples: ['MkU='] },
      ),
      secrets: Type.Array(Secret, {
        description: 'The secrets that sign now, newest first; a delivery has one signature for each.',
      }),
      secret: Type.Optional(
        said(
          Nullable(Type.String()),
          'The new secret, whole, in the answers to registration and rotation alone: store it. A repeat of the call shows it for 24 hours while it still signs, then null.',
          { examples: ['whsec_<base64 of 32 bytes>'] },
        ),
      ),
      ...stamps,
    },
    { description: 'An endpoint of yours that receives events, each as one signed call.' },
  ),
);

export const WebhookTestSend = Named(
  'WebhookTestSend',
  Type.Object(
    { eventType: Defaulted(said(EventTypeInput, 'The type whose example data is sent.'), 'webhook.test') },
    { description: 'What a test delivery holds.' },
  ),
);
export const WebhookSecretRotation = Named(
  'WebhookSecretRotation',
  Type.Object({}, { description: 'A rotation takes no members.' }),
);

export const deliveryStatuses = ['pending', 'delivered', 'failed', 'canceled'] as const;
const deliveryWords =
  'pending: an attempt is due, under way or waits until the endpoint is on, for at most 30 days; delivered: the endpoint answered 2xx; failed: no attempt succeeded, and no further one is planned; canceled: the endpoint was off or did not take the type when the event happened, or its replay was canceled.';
const DeliveryStatus = OpenEnum('DeliveryStatus', deliveryStatuses, deliveryWords);
const DeliveryStatusInput = ClosedEnum('DeliveryStatusInput', deliveryStatuses, deliveryWords);
const triggers = ['scheduled', 'test', 'resend', 'replay'] as const;
const triggerWords =
  'Why an attempt was made. scheduled: the event happened, or an earlier attempt failed; test: a caller asked for a test delivery; resend: a caller sent the delivery again; replay: it belongs to a replay.';
const attemptErrors = ['url_not_allowed', 'connection_failed', 'tls_failed', 'timeout', 'bad_response'] as const;
const attemptErrorWords =
  'Why an attempt has no HTTP status. url_not_allowed: the service may not call the address; connection_failed: no connection, or it broke; tls_failed: the certificate or the handshake was refused; timeout: the answer took too long; bad_response: the answer is no HTTP.';

const endpointId = said(UuidInput, 'Id of the endpoint.');
export const DeliveryParams = Type.Object({ id: endpointId, deliveryId: said(UuidInput, 'Id of the delivery.') });

export const DeliveryQuery = Type.Object({
  ...paging,
  status: Maybe(Type.Array(DeliveryStatusInput, { minItems: 1, description: 'One status, or several with commas.' })),
  eventType: Maybe(said(EventTypeInput, 'Only deliveries of events of this type.')),
  from: Maybe(InstantInput('Created at or after.')),
  to: Maybe(InstantInput('Created before.')),
});

const Attempt = Named(
  'WebhookAttempt',
  Type.Object(
    {
      number: Type.Integer({
        minimum: 1,
        description:
          'Number of the attempt, sent as X-Service-Attempt: 1 for the first; it goes on through resends. A number may be missing where a process stopped in the middle.',
      }),
      at: said(Instant, 'When the request was begun.'),
      trigger: said(OpenEnum('AttemptTrigger', triggers, triggerWords), 'Why it was made.'),
      status: said(Nullable(Type.Integer()), 'HTTP status of the answer; null where there was none.', {
        examples: [200],
      }),
      error: said(
        Nullable(OpenEnum('AttemptError', attemptErrors, attemptErrorWords)),
        'Why there was no status; null where there was one.',
      ),
      durationMs: Type.Number({
        minimum: 0,
        description: 'Milliseconds from the beginning of the request to the end of the answer.',
      }),
      responseBody: said(
        Nullable(Type.String()),
        'The beginning of the body of the answer, at most 4 KiB; null where it was empty or there was no answer.',
        { examples: ['ok'] },
      ),
    },
    { description: 'One call of the endpoint with one event.' },
  ),
);

export const WebhookDelivery = Named(
  'WebhookDelivery',
  Type.Object(
    {
      id: said(Uuid, 'Id of the delivery.'),
      object: Type.Literal('webhook_delivery', { description: 'The kind of resource.' }),
      webhookId: said(Uuid, 'The endpoint that it goes to.'),
      eventId: Type.String({
        format: 'uuid',
        description:
          'The id of the event: that of its envelope and of the header webhook-id. Every delivery of the event has it.',
      }),
      eventType: said(EventType, 'The type of the event.'),
      status: said(DeliveryStatus, 'Whether the endpoint has accepted the event.'),
      attempts: Type.Array(Attempt, { description: 'The attempts to deliver it that have ended, oldest first.' }),
      nextAttemptAt: said(
        Nullable(Instant),
        'When the next attempt is due; null once no further one is planned, while one is under way, and while the endpoint is off.',
      ),
      deliveredAt: said(Nullable(Instant), 'When the endpoint accepted it; null otherwise.'),
      replayId: said(Nullable(Uuid), 'The replay that it belongs to; null: none.'),
      createdAt: said(Instant, 'When the delivery was created.'),
      updatedAt: said(Instant, 'When it last changed.'),
    },
    { description: 'One event for one endpoint, with its attempts. Kept for 30 days.' },
  ),
);

export const WebhookReplayCreate = Named(
  'WebhookReplayCreate',
  Type.Object(
    {
      from: InstantInput(
        'Events are sent again whose `created` is at or after it; it may lie before the endpoint was registered.',
      ),
      to: Maybe(
        InstantInput('Events are sent again whose `created` is before it. Absent, or later than now: until now.'),
      ),
      types: Maybe(
        said(Events, 'Only events that match any entry. Absent: those that match the endpoint’s own `events`.'),
      ),
    },
    { description: 'Which events are sent to an endpoint again.' },
  ),
);

export const replayStatuses = ['running', 'completed', 'canceled', 'failed'] as const;
const replayWords =
  'running: deliveries are being created; completed: all deliveries are created, whether or not they are sent yet; canceled: a caller canceled it; failed: the service could not read an event, and the replay ended there.';
export const ReplayParams = Type.Object({ id: endpointId, replayId: said(UuidInput, 'Id of the replay.') });

export const WebhookReplay = Named(
  'WebhookReplay',
  Type.Object(
    {
      id: said(Uuid, 'Id of the replay.'),
      object: Type.Literal('webhook_replay', { description: 'The kind of resource.' }),
      webhookId: said(Uuid, 'The endpoint that the events are sent to.'),
      from: said(Instant, 'Events whose `created` is at or after it are sent again.'),
      to: said(Instant, 'Events whose `created` is before it are sent again.'),
      types: said(
        Nullable(Type.Array(EventFilter)),
        'The events that are sent: those that match any entry; null: those that match the endpoint’s own `events`.',
      ),
      status: said(OpenEnum('ReplayStatus', replayStatuses, replayWords), 'Where the replay stands.'),
      progress: Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'The part of the time range that has been read, from 0 to 1.',
        examples: [0.4],
      }),
      minted: Type.Integer({ minimum: 0, description: 'Number of deliveries created so far.' }),
      readTo: said(Nullable(Instant), '`created` of the newest event that has been read; null before the first.'),
      createdAt: said(Instant, 'When the replay was asked for.'),
      updatedAt: said(Instant, 'When it last changed.'),
      completedAt: said(
        Nullable(Instant),
        'When its last delivery was created; null before, and for a replay that was canceled or failed.',
      ),
    },
    { description: 'The events of a time range, sent to an endpoint again.' },
  ),
);
