import { Type } from 'typebox';
import { Instant, Nullable, Uuid } from '#schemas/common.ts';
import { ClosedEnum, Named, OpenEnum, said } from '#schemas/published.ts';
import { DisableReason } from '#schemas/webhook.ts';
import { Defaulted, InstantInput, Maybe, paging, stamps } from './common.ts';

/** Webhook endpoints, their deliveries and their replays, as callers send them and see them. */

const Url = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'A public https address; redirects are not followed. Stored unchanged.',
});
const EventType = Type.String({ minLength: 1, maxLength: 100 });
const Events = Type.Array(EventType, {
  minItems: 1,
  maxItems: 100,
  description: 'Exact types, `<noun>.*` for all types with this beginning, or `*`.',
});
const Description = Type.String({ maxLength: 500 });

export const WebhookCreate = Named(
  'WebhookCreate',
  Type.Object({ url: Url, events: Events, description: Defaulted(Description, null) }),
);

/** Only the sent members change. */
export const WebhookUpdate = Named(
  'WebhookUpdate',
  Type.Object({
    url: Maybe(Url),
    events: Maybe(Events),
    active: Maybe(
      Type.Boolean({ description: 'False: nothing is sent, and events of this time are not sent later either.' }),
    ),
    description: Defaulted(Description, null),
  }),
);

export const WebhookQuery = Type.Object(paging);

export const Webhook = Named(
  'Webhook',
  Type.Object({
    id: Uuid,
    object: Type.Literal('webhook'),
    url: Type.String(),
    events: Type.Array(Type.String()),
    active: Type.Boolean(),
    description: Nullable(Type.String()),
    disabledReason: Nullable(DisableReason),
    secretHint: Nullable(Type.String({ description: 'The last 4 characters of the newest secret.' })),
    secrets: Type.Array(Named('WebhookSecret', Type.Object({ createdAt: Instant, expiresAt: Nullable(Instant) })), {
      description: 'The secrets that sign now, newest first; the newest does not expire.',
    }),
    secret: Type.Optional(
      Nullable(
        Type.String({
          description:
            'Whole, in answers to registration and rotation alone; by a repeat for 24 hours while it still signs, then null.',
        }),
      ),
    ),
    ...stamps,
  }),
);

export const WebhookTest = Named('WebhookTest', Type.Object({ eventType: Defaulted(EventType, 'webhook.test') }));
export const WebhookSecretRotation = Named('WebhookSecretRotation', Type.Object({}));

export const deliveryStatuses = ['pending', 'delivered', 'failed', 'canceled'] as const;
const deliveryWords =
  'pending: attempts go on; delivered: the endpoint accepted it; failed: no attempt succeeded; canceled: the endpoint was turned off or deleted.';
const DeliveryStatus = OpenEnum('DeliveryStatus', deliveryStatuses, deliveryWords);
const DeliveryStatusInput = ClosedEnum('DeliveryStatusInput', deliveryStatuses, deliveryWords);
const triggers = ['scheduled', 'test', 'resend', 'replay'] as const;
/** Why an attempt has no status. */
const attemptErrors = ['url_not_allowed', 'connection_failed', 'tls_failed', 'timeout', 'bad_response'] as const;

export const DeliveryParams = Type.Object({ id: Uuid, deliveryId: Uuid });

export const DeliveryQuery = Type.Object({
  ...paging,
  status: Maybe(Type.Array(DeliveryStatusInput, { minItems: 1, description: 'One, or several separated by commas.' })),
  eventType: Maybe(EventType),
  from: Maybe(InstantInput('Of `createdAt`, inclusive.')),
  to: Maybe(InstantInput('Of `createdAt`, exclusive.')),
});

const Attempt = Named(
  'WebhookAttempt',
  Type.Object({
    number: Type.Integer({ minimum: 1, description: 'Sent as X-Service-Attempt; counts on through resends.' }),
    at: Instant,
    trigger: OpenEnum('AttemptTrigger', triggers, 'Why the attempt was made.'),
    status: Nullable(Type.Integer({ description: 'HTTP status of the answer.' })),
    error: said(
      Nullable(OpenEnum('AttemptError', attemptErrors, 'Why there was no answer.')),
      'Why there was no answer; null where there was one.',
    ),
    durationMs: Type.Number({ minimum: 0 }),
    responseBody: Nullable(Type.String({ description: 'The beginning of the body, at most 4 KiB.' })),
  }),
);

export const WebhookDelivery = Named(
  'WebhookDelivery',
  Type.Object({
    id: Uuid,
    object: Type.Literal('webhook_delivery'),
    webhookId: Uuid,
    eventId: Type.String({ format: 'uuid', description: 'The id of the envelope and of its header webhook-id.' }),
    eventType: Type.String(),
    status: DeliveryStatus,
    attempts: Type.Array(Attempt, { description: 'Oldest first. Kept for 30 days.' }),
    /** Null once it is settled, while an attempt is under way, and while the endpoint is off. */
    nextAttemptAt: Nullable(Instant),
    deliveredAt: Nullable(Instant),
    replayId: Nullable(Uuid),
    createdAt: Instant,
    updatedAt: Instant,
  }),
);

const longAgo = 'Of `created` of the events';
export const WebhookReplayCreate = Named(
  'WebhookReplayCreate',
  Type.Object({
    from: InstantInput(`${longAgo}, inclusive; it may lie before the endpoint was registered.`),
    to: Maybe(InstantInput(`${longAgo}, exclusive; default, and at the latest, now.`)),
    types: Maybe(Events),
  }),
);

export const replayStatuses = ['running', 'completed', 'canceled', 'failed'] as const;
export const ReplayParams = Type.Object({ id: Uuid, replayId: Uuid });

export const WebhookReplay = Named(
  'WebhookReplay',
  Type.Object({
    id: Uuid,
    object: Type.Literal('webhook_replay'),
    webhookId: Uuid,
    from: Instant,
    to: Instant,
    types: Nullable(Type.Array(Type.String(), { description: 'Null: the types of the endpoint’s own filter.' })),
    status: OpenEnum('ReplayStatus', replayStatuses, 'Where a replay stands.'),
    progress: Type.Number({ minimum: 0, maximum: 1 }),
    minted: Type.Integer({ minimum: 0, description: 'Deliveries created so far.' }),
    readTo: Nullable(Instant),
    createdAt: Instant,
    updatedAt: Instant,
    completedAt: Nullable(Instant),
  }),
);
