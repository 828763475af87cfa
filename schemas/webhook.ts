import { type Static, Type } from 'typebox';
import { ClientIds, type EventOf, Instant, Nullable, Uuid } from './common.ts';
import { OpenEnum } from './published.ts';

/** A webhook endpoint: its address, its subscription, whether it is on, and the requests made of it. */

/** `post.published`, `post.*` or `*`; the table of public events lists the types. */
export const EventFilter = Type.Array(
  Type.String({ minLength: 1, maxLength: 100, pattern: '^([a-z_]+(\\.[a-z_]+)*(\\.\\*)?|\\*)$' }),
  { minItems: 1, maxItems: 100 },
);
const EndpointUrl = Type.String({ minLength: 1, maxLength: 2048 });
const Description = Nullable(Type.String({ maxLength: 500 }));
/** Version of the secret key from which a generation of its signing secret is derived. */
const KeyVersion = Type.String({ minLength: 1, maxLength: 20 });

export const WebhookFields = Type.Object({
  url: EndpointUrl,
  events: EventFilter,
  description: Description,
  /** The clients to whose events it is limited; null: all events of the workspace. */
  clientIds: Nullable(ClientIds),
});
export type WebhookFields = Static<typeof WebhookFields>;

export const disableReasons = ['requested', 'failing', 'gone', 'receiver'] as const;
export type DisableReason = (typeof disableReasons)[number];
export const DisableReason = OpenEnum(
  'WebhookDisableReason',
  disableReasons,
  'Why an endpoint is off. requested: a caller turned it off; failing: no delivery succeeded for days; gone: the endpoint answered 410; receiver: its answer had the header `webhook-delivery: disable`.',
);

export const webhookEvents = {
  /** Its first secret is generation 1. */
  WebhookRegistered: Type.Object({ ...WebhookFields.properties, keyVersion: KeyVersion }),
  /** Only the changed members. */
  WebhookUpdated: Type.Partial(WebhookFields),
  WebhookSecretRotated: Type.Object({
    generation: Type.Integer({ minimum: 2 }),
    keyVersion: KeyVersion,
    /** Until when the previous generation also signs. */
    previousExpiresAt: Instant,
  }),
  WebhookDisabled: Type.Object({
    by: OpenEnum(
      'WebhookDisabler',
      ['user', 'service'],
      'Who turned an endpoint off. user: a caller; service: this service, after failures or because the endpoint asked for it.',
    ),
    reason: DisableReason,
  }),
  WebhookEnabled: Type.Object({}),
  WebhookDeleted: Type.Object({}),
  WebhookTestRequested: Type.Object({ eventType: Type.String({ minLength: 1, maxLength: 100 }) }),
  WebhookResendRequested: Type.Object({
    deliveryId: Uuid,
    /** Time of the delivered event: it locates the delivery. */
    eventTime: Instant,
  }),
  WebhookReplayRequested: Type.Object({
    replayId: Uuid,
    /** Of `created` of the events: from inclusive, to exclusive. */
    from: Instant,
    to: Instant,
    /** Null: the types of the endpoint's own filter. */
    types: Nullable(EventFilter),
  }),
  WebhookReplayCanceled: Type.Object({ replayId: Uuid }),
} as const;
export type WebhookEvent = EventOf<typeof webhookEvents>;
