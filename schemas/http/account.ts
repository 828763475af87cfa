import { type Static, Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { Maybe, PlatformInput, paging, stamps } from './common.ts';

/** A connected account, as callers see it. */

const Status = Type.Enum(['connected', 'reauth_required', 'disconnected']);

export const AccountQuery = Type.Object({
  ...paging,
  clientId: Maybe(Uuid),
  platform: Maybe(
    Type.Array(PlatformInput, { minItems: 1, maxItems: 20, description: 'One, or several with commas.' }),
  ),
});

export const Account = Type.Object({
  id: Uuid,
  object: Type.Literal('account'),
  clientId: Uuid,
  platform: Platform,
  externalId: Type.String(),
  username: Nullable(Type.String()),
  displayName: Nullable(Type.String()),
  avatarUrl: Nullable(Type.String()),
  timezone: Nullable(Type.String({ description: 'Zone of the wall-clock times of its targets.' })),
  status: Status,
  health: Type.Object({
    state: Type.Enum(['ok', 'reauth_required', 'disconnected']),
    reason: Nullable(Type.String()),
    checkedAt: Instant,
  }),
  scopes: Type.Array(Type.String()),
  expiresAt: Nullable(Instant),
  capabilities: Type.Object({
    thread: Type.Boolean(),
    firstComment: Type.Boolean(),
    native: Type.Boolean(),
    textOnly: Type.Boolean(),
    altText: Type.Boolean(),
    cover: Type.Boolean(),
    aiLabel: Type.Boolean(),
  }),
  ...stamps,
});
export type Account = Static<typeof Account>;
