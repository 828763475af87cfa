import { type Static, type TSchema, Type } from 'typebox';
import { Named, OpenEnum } from './published.ts';

/** Shapes that every noun uses. No rule lives here. */

export const uuidPattern = '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$';
/** For inputs: callers may write an id in upper case. */
export const anyCaseUuid = uuidPattern.replaceAll('a-f', 'a-fA-F');
export const Uuid = Type.String({
  format: 'uuid',
  pattern: uuidPattern,
  expects: 'a uuid in lower case, such as 0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001',
});
/** An instant in UTC with milliseconds: `2026-01-31T08:00:00.000Z`. */
export const Instant = Type.String({
  format: 'date-time',
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
  expects: 'an instant in UTC with milliseconds, such as 2026-01-31T08:00:00.000Z',
});
/** A wall-clock time without a zone: `2026-01-31T08:00`. */
export const LocalDateTime = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d$',
  expects: 'a date and a time without a zone, such as 2026-01-31T08:00',
});

export const platforms = [
  'x',
  'instagram',
  'tiktok',
  'youtube',
  'facebook',
  'linkedin',
  'threads',
  'pinterest',
  'bluesky',
  'telegram',
] as const;
export const Platform = OpenEnum('Platform', platforms, 'A social network.');
export type Platform = (typeof platforms)[number];

export const roles = ['owner', 'manager', 'creator', 'viewer'] as const;
export const Role = OpenEnum('Role', roles, 'What a member may do, from the most to the least.');
export type Role = (typeof roles)[number];

export const Mode = OpenEnum('Mode', ['live', 'test'], 'test: the sandbox twin of a workspace, for test keys.');
export type Mode = 'live' | 'test';

/** The actor: a member, a member through a key, one of our services, the guest of a page behind a link, or an operator. */
export const Actor = Type.Object({
  type: Type.Enum(['member', 'apikey', 'service', 'guest', 'admin']),
  id: Type.String({ minLength: 1, maxLength: 200 }),
});
export type Actor = Static<typeof Actor>;

/** A member, a key or one of our services: an id, never a name. */
export const ActorRef = Named(
  'ActorRef',
  Type.Object(
    {
      type: Type.String({ maxLength: 20, description: 'The kind of actor: member, apikey, service or guest.' }),
      id: Type.String({ maxLength: 200, description: 'Its id: that of the member, key or service.' }),
    },
    { description: 'Who did something: an id, never a name.' },
  ),
);

/** The clients to which a credential or an endpoint is limited. */
export const maxLimitClients = 100;
export const ClientIds = Type.Array(Uuid, { minItems: 1, maxItems: maxLimitClients });

export const Nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

/** A member that is encrypted at the store's edge with the client's data key; null once that key is destroyed. */
export const Personal = (maxLength: number) =>
  Type.Union([Type.String({ maxLength }), Type.Null()], { personal: true });

/** A person acts in what belongs to no workspace: the own account and its sessions. */
export type EventActor =
  | (Actor & {
      /** The grant under which an app acted for the member. */
      readonly grantId?: string;
    })
  | { readonly type: 'person'; readonly id: string };

export const EventMetadata = Type.Object({
  workspaceId: Uuid,
  partitionKey: Type.String({ minLength: 1 }),
  actor: Type.Object({
    type: Type.Enum(['member', 'apikey', 'service', 'guest', 'admin', 'person']),
    id: Type.String({ minLength: 1, maxLength: 200 }),
    grantId: Type.Optional(Uuid),
  }),
  $correlationId: Type.String({ minLength: 1, maxLength: 128 }),
  $causationId: Type.String({ minLength: 1, maxLength: 128 }),
  commandId: Type.String({ minLength: 1, maxLength: 128 }),
  /** In real time, also where the clock of a sandbox workspace is ahead. */
  occurredAt: Instant,
  /** Milliseconds by which the workspace's clock was ahead of `occurredAt` when this was decided; absent: it was not. */
  aheadMs: Type.Optional(Type.Integer({ minimum: 1 })),
  schemaVersion: Type.Integer({ minimum: 1 }),
  /** HMAC of the caller's Idempotency-Key, where one was sent. */
  keyHmac: Type.Optional(Type.String()),
  /** HMAC of operation, path, query and canonical body, where a key was sent. */
  fingerprint: Type.Optional(Type.String()),
});
export type EventMetadata = Static<typeof EventMetadata>;

/** By the clock of its workspace: the instant that a decision read, and that folds compare with others. ISO 8601. */
export const instantOf = ({ occurredAt, aheadMs }: Pick<EventMetadata, 'occurredAt' | 'aheadMs'>): string =>
  aheadMs === undefined ? occurredAt : new Date(Date.parse(occurredAt) + aheadMs).toISOString();

/** `{ TypeName: schema }` → the union `{ type, data }` of a stream's events. */
export type EventOf<M extends Record<string, TSchema>> = {
  [T in keyof M & string]: { readonly type: T; readonly data: Static<M[T]> };
}[keyof M & string];
