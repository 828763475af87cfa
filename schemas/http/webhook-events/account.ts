import { Type } from 'typebox';
import { accountEvents } from '#schemas/account.ts';
import { accountIds, example, exampleAccount, publicEvent } from './common.ts';

/** Events of a connected account. Its name and picture on the network are personal, and not published. */

const { timezone, expiresAt, inviteId } = accountEvents.AccountConnected.properties;
const granted = { timezone, expiresAt, inviteId };
const exampleGrant = { timezone: 'Europe/Berlin', expiresAt: null, inviteId: example.inviteId };

export const accountPublic = {
  'account.connected': publicEvent('An account was connected.', Type.Object({ ...accountIds, ...granted }), {
    ...exampleAccount,
    ...exampleGrant,
  }),
  'account.reauthorized': publicEvent(
    'An account was authorized again: it works again, or with other rights.',
    Type.Object({ ...accountIds, ...granted }),
    { ...exampleAccount, ...exampleGrant },
  ),
  'account.reauth_required': publicEvent(
    'A connected account needs reauthorization; sent once per lapse.',
    Type.Object({ ...accountIds, reason: accountEvents.AccountReauthRequired.properties.reason }),
    { ...exampleAccount, reason: 'The token was revoked on the network.' },
  ),
  'account.disconnected': publicEvent(
    'An account was disconnected.',
    Type.Object({ ...accountIds, reason: accountEvents.AccountDisconnected.properties.reason }),
    { ...exampleAccount, reason: 'requested' },
  ),
};
