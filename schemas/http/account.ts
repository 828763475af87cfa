import { type Static, Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { Named, OpenEnum } from '#schemas/published.ts';
import { Maybe, PlatformInput, paging, stamps } from './common.ts';

/** A connected account, as callers see it. */

const Status = OpenEnum(
  'AccountStatus',
  ['connected', 'reauth_required', 'disconnected'],
  'connected: it publishes; reauth_required: it must be connected again; disconnected: it was disconnected.',
);
const HealthState = OpenEnum(
  'AccountHealthState',
  ['ok', 'reauth_required', 'disconnected'],
  'ok: the network accepts our calls.',
);

export const AccountQuery = Type.Object({
  ...paging,
  clientId: Maybe(Uuid),
  platform: Maybe(
    Type.Array(PlatformInput, { minItems: 1, maxItems: 20, description: 'One, or several with commas.' }),
  ),
});

export const Account = Named(
  'Account',
  Type.Object({
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
    health: Named(
      'AccountHealth',
      Type.Object({
        state: HealthState,
        reason: Nullable(Type.String()),
        checkedAt: Instant,
      }),
    ),
    scopes: Type.Array(Type.String()),
    expiresAt: Nullable(Instant),
    capabilities: Named(
      'AccountCapabilities',
      Type.Object({
        thread: Type.Boolean(),
        firstComment: Type.Boolean(),
        native: Type.Boolean(),
        textOnly: Type.Boolean(),
        altText: Type.Boolean(),
        cover: Type.Boolean(),
        aiLabel: Type.Boolean(),
      }),
    ),
    ...stamps,
  }),
);
export type Account = Static<typeof Account>;
