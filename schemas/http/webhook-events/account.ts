import { Type } from 'typebox';
import { accountEvents } from '#schemas/account.ts';
import { said } from '#schemas/published.ts';
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
  'account.disconnected': publicEvent(
    'An account was disconnected: nothing is published to it any more.',
    Type.Object({ ...accountIds, reason: said(parting, 'Why it was disconnected, in words for a person.') }),
    { ...exampleAccount, reason: 'Disconnected on request.' },
  ),
};
