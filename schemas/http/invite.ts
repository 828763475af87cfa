import { Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { defaultMaxAccounts } from '../invite.ts';
import { Defaulted, Maybe, PlatformInput } from './common.ts';

/** A connect link, as callers request and see it. */

export const InviteCreate = Type.Object({
  platforms: Type.Array(PlatformInput, { minItems: 1, maxItems: 20 }),
  expiresInHours: Defaulted(Type.Integer({ minimum: 1, maximum: 168 }), 48),
  maxAccounts: Maybe(
    Type.Integer({
      minimum: 1,
      maximum: 1_000,
      description: `Accounts that may be connected through the link: ${defaultMaxAccounts} by default. An account that was connected through the link may reconnect at any time.`,
    }),
  ),
  recipientEmail: Maybe(
    Type.String({
      format: 'email',
      maxLength: 320,
      description: 'Recorded for tracking; no e-mail is sent.',
      expects: 'an e-mail address, such as ana@example.com',
    }),
  ),
});

export const Invite = Type.Object({
  object: Type.Literal('connect_invite'),
  inviteId: Uuid,
  clientId: Uuid,
  url: Nullable(
    Type.String({ description: 'Shown until the link expires, also in the answer to a repeated call; then null.' }),
  ),
  token: Nullable(Type.String({ description: 'Secret: its holder may connect accounts. Null once expired.' })),
  platformsRequested: Type.Array(Platform),
  maxAccounts: Type.Integer({ minimum: 1 }),
  expiresAt: Instant,
  createdAt: Instant,
});
