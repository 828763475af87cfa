import { Type } from 'typebox';
import { accountEvents } from '#schemas/account.ts';
import { Instant, Nullable } from '#schemas/common.ts';
import { Named, said } from '#schemas/published.ts';
import { accountIds, example, exampleAccount, onceFor, publicEvent } from './common.ts';

/** Events of a connected account. Its name and picture on the network are personal, and not published. */

const { timezone, expiresAt, inviteId } = accountEvents.AccountConnected.properties;
const granted = {
  timezone: said(timezone, 'IANA zone of the wall-clock times of its targets; null: none was set for the account.', {
    examples: ['Europe/Berlin'],
  }),
  expiresAt: said(expiresAt, 'When the authorization ends; null where the network names no end.'),
  inviteId: said(inviteId, 'The connect link through which it was authorized; null: none.'),
};
const exampleGrant = { timezone: 'Europe/Berlin', expiresAt: null, inviteId: example.inviteId };

const { reason: lapse } = accountEvents.AccountReauthRequired.properties;
const { reason: parting } = accountEvents.AccountDisconnected.properties;

const ObservedLimit = Named(
  'ObservedLimit',
  Type.Object(
    {
      name: Type.String({ description: 'The window, in words.' }),
      seconds: Type.Integer({ minimum: 1, description: 'Its length.' }),
      limit: Type.Integer({ minimum: 0, description: 'Calls that the network allows in it.' }),
      used: Type.Integer({ minimum: 0, description: 'Calls that it had counted when it reported them.' }),
      resetsAt: said(Nullable(Instant), 'When the window ends; null: the network names no end.'),
    },
    { description: 'A limit that the network reports for one account.' },
  ),
);

export const accountPublic = {
  'account.connected': publicEvent(
    'A person connected an account to a client for the first time.',
    Type.Object({ ...accountIds, ...granted }),
    { ...exampleAccount, ...exampleGrant },
  ),
  'account.reauthorized': publicEvent(
    'A person authorized a known account again: it works again, or with other rights.',
    Type.Object({ ...accountIds, ...granted }),
    { ...exampleAccount, ...exampleGrant },
  ),
  'account.reauth_required': publicEvent(
    `A network no longer accepts the authorization of an account: a person must authorize it again. ${onceFor('lapse of an authorization')}`,
    Type.Object({ ...accountIds, reason: said(lapse, 'Why the network refuses the account, in words for a person.') }),
    { ...exampleAccount, reason: 'The token was revoked on the network.' },
  ),
  'account.updated': publicEvent(
    'The name or the picture of an account changed on its network: GET /accounts/{id} shows them.',
    Type.Object(accountIds),
    exampleAccount,
  ),
  'account.limits_observed': publicEvent(
    'The network of an account reported other limits of how often it may publish.',
    Type.Object({
      ...accountIds,
      windows: Type.Array(ObservedLimit, { description: 'All limits that the network reports.' }),
    }),
    {
      ...exampleAccount,
      windows: [{ name: '24 hours', seconds: 86_400, limit: 100, used: 3, resetsAt: '2026-02-01T08:00:00.000Z' }],
    },
  ),
  'account.disconnected': publicEvent(
    'An account was disconnected: nothing is published to it any more.',
    Type.Object({ ...accountIds, reason: said(parting, 'Why it was disconnected, in words for a person.') }),
    { ...exampleAccount, reason: 'Disconnected on request.' },
  ),
};
