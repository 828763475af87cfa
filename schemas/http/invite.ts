import { Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { defaultMaxAccounts } from '../invite.ts';
import { Defaulted, Maybe, PlatformInput } from './common.ts';

/** A connect link, as callers ask for it and see it. */

export const InviteCreate = Type.Object({
  platforms: Type.Array(PlatformInput, { minItems: 1, maxItems: 20 }),
  expiresInHours: Defaulted(Type.Integer({ minimum: 1, maximum: 168 }), 48),
  maxAccounts: Maybe(
    Type.Integer({
      minimum: 1,
      maximum: 1_000,
      description: `Accounts that may be connected through the link: ${defaultMaxAccounts} unless it is given. One that was connected through it connects again any time.`,
    }),
  ),
  recipientEmail: Maybe(
    Type.String({ format: 'email', maxLength: 320, description: 'Recorded for tracking; nothing is sent.' }),
  ),
});

export const Invite = Type.Object({
  object: Type.Literal('connect_invite'),
  inviteId: Uuid,
  clientId: Uuid,
  url: Nullable(Type.String({ description: 'Shown until it expires, also by a replay; then null.' })),
  token: Nullable(Type.String({ description: 'Secret: whoever has it may connect accounts. Null once expired.' })),
  platformsRequested: Type.Array(Platform),
  maxAccounts: Type.Integer({ minimum: 1 }),
  expiresAt: Instant,
  createdAt: Instant,
});
