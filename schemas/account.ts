import { Type } from 'typebox';
import { ObservedWindow } from './cadence.ts';
import { type EventOf, Instant, Nullable, Personal, Platform, Uuid } from './common.ts';
import { Timezone } from './workspace.ts';

/** A connected social account of a client. Its id is uuidv5(client, platform, external id): a reconnect keeps it. */

const profile = {
  username: Personal(200),
  displayName: Personal(200),
  avatarUrl: Nullable(Type.String({ maxLength: 2000 })),
};
const grant = { scopes: Type.Array(Type.String({ maxLength: 100 })), expiresAt: Nullable(Instant) };

export const accountEvents = {
  AccountConnected: Type.Object({
    clientId: Uuid,
    platform: Platform,
    externalId: Type.String({ minLength: 1, maxLength: 200 }),
    ...profile,
    ...grant,
    timezone: Nullable(Timezone),
    /** The adapter that publishes: the network's own, or the sandbox. */
    network: Type.Enum(['live', 'sandbox']),
    inviteId: Nullable(Uuid),
  }),
  AccountReauthorized: Type.Object({
    clientId: Uuid,
    ...profile,
    ...grant,
    timezone: Nullable(Timezone),
    inviteId: Nullable(Uuid),
  }),
  AccountReauthRequired: Type.Object({ reason: Type.String({ maxLength: 500 }) }),
  AccountDisconnected: Type.Object({ reason: Type.String({ maxLength: 200 }) }),
  /** The limits that the network reports for the account, all of them. */
  AccountLimitsObserved: Type.Object({ clientId: Uuid, windows: Type.Array(ObservedWindow, { maxItems: 20 }) }),
  AccountProfileChanged: Type.Object({ clientId: Uuid, ...profile }),
} as const;
export type AccountEvent = EventOf<typeof accountEvents>;

/** What a network says that an account may post now. */
export interface AccountFacts {
  /** When the network said it, ISO 8601. */
  readonly observedAt: string;
  /** The values that a setting may have, by its key; an absent key may have any. */
  readonly allows: Readonly<Record<string, readonly (string | boolean)[]>>;
  /** Of a video, milliseconds; null: the network names no limit of the account. */
  readonly maxDurationMs: number | null;
  readonly canPostNow: boolean;
  /** When it may again where it cannot now, ISO 8601; null: not before its owner does something on the network. */
  readonly until: string | null;
}
