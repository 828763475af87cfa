import { Type } from 'typebox';
import { ActorRef, Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { Named, said } from '#schemas/published.ts';
import { defaultMaxAccounts } from '../invite.ts';
import { Defaulted, Maybe, PlatformInput, UuidInput } from './common.ts';

/** A connect link, as callers request and see it. */

export const ConnectInviteCreate = Named(
  'ConnectInviteCreate',
  Type.Object(
    {
      platforms: Type.Array(PlatformInput, {
        minItems: 1,
        maxItems: 20,
        description: 'The networks whose accounts may be connected through the link. A repeated one counts once.',
        examples: [['bluesky', 'threads']],
      }),
      expiresInHours: Defaulted(
        Type.Integer({ minimum: 1, maximum: 168, description: 'Hours until the link expires.' }),
        48,
      ),
      maxAccounts: Maybe(
        Type.Integer({
          minimum: 1,
          maximum: 1_000,
          description: `Accounts that may be connected through the link: ${defaultMaxAccounts} by default. An account that was connected through the link may reconnect until it expires.`,
        }),
      ),
      recipientEmail: Maybe(
        Type.String({
          format: 'email',
          maxLength: 320,
          description: 'Recorded for tracking; no e-mail is sent.',
          examples: ['social@acme.example'],
          expects: 'an e-mail address, such as ana@example.com',
        }),
      ),
    },
    { description: 'What a connect link is for.' },
  ),
);

export const ConnectInviteParams = Type.Object({
  id: said(UuidInput, 'Id of the client.'),
  inviteId: said(UuidInput, 'Id of the link.'),
});

export const ConnectInvite = Named(
  'ConnectInvite',
  Type.Object(
    {
      object: Type.Literal('connect_invite', { description: 'The kind of resource.' }),
      inviteId: said(Uuid, 'Id of the link; events of the accounts that it connects name it.'),
      clientId: said(Uuid, 'The client that the accounts are connected to.'),
      url: said(
        Nullable(Type.String()),
        'The page to send to the owner of the accounts. Shown to its creation, also in the answer to a repeated call, until the link expires or is revoked; null in lists.',
        { examples: ['https://console.example/invite/<token>'] },
      ),
      token: said(
        Nullable(Type.String()),
        'The last part of `url`. Secret: its holder may connect accounts. Null as `url` is.',
      ),
      platformsRequested: Type.Array(Platform, {
        description: 'The networks whose accounts may be connected, each once.',
      }),
      maxAccounts: Type.Integer({ minimum: 1, description: 'Accounts that may be connected through the link.' }),
      recipientEmail: said(
        Nullable(Type.String()),
        'The address that was recorded with it; null: none was, or the data of the client were erased.',
        { examples: ['social@acme.example'] },
      ),
      accountIds: Type.Array(Uuid, {
        description: 'The accounts that were connected through the link, in order, each once.',
      }),
      createdBy: said(
        ActorRef,
        'The member or key that made it. The link works while the member behind it may connect accounts.',
      ),
      isRevoked: Type.Boolean({ description: 'Whether it was revoked before its end.' }),
      expiresAt: said(Instant, 'From when on the link no longer works.'),
      createdAt: said(Instant, 'When the link was created.'),
    },
    { description: 'A link whose holder may connect accounts to one client.' },
  ),
);
