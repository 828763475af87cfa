import { Type } from 'typebox';
import { type EventOf, Instant, Nullable, Personal, Platform, Uuid } from './common.ts';

/** A connect link: its holder may connect accounts of its platforms to its client until it expires. */

/** Accounts that one link may connect when its creator gives no number. */
export const defaultMaxAccounts = 50;

export const inviteEvents = {
  ConnectInviteCreated: Type.Object({
    clientId: Uuid,
    platforms: Type.Array(Platform, { minItems: 1, maxItems: 10 }),
    expiresAt: Instant,
    /** Version of the secret key from which its token is derived. */
    keyVersion: Type.String({ minLength: 1, maxLength: 20 }),
    recipientEmail: Personal(320),
    /** Accounts it may connect. Missing in invites from before the limit, which have the default. */
    maxAccounts: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
  }),
  ConnectInviteUsed: Type.Object({ accountId: Uuid, platform: Platform }),
  ConnectInviteRevoked: Type.Object({ reason: Nullable(Type.String({ maxLength: 200 })) }),
} as const;
export type InviteEvent = EventOf<typeof inviteEvents>;
