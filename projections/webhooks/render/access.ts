import type { ApiKeyEvent } from '#schemas/apikey.ts';
import type { Mode } from '#schemas/common.ts';
import type { apikeyPublic, invitePublic } from '#schemas/http/webhook-events/access.ts';
import { defaultMaxAccounts, type InviteEvent } from '#schemas/invite.ts';
import type { Publisher } from '../../engine/publisher.ts';

/** API keys and connect links: never a secret, a hash, a token or the address of a person. */

interface Key {
  readonly memberId: string;
  readonly mode: Mode;
}

export const apikeyPublisher: Publisher<typeof apikeyPublic, ApiKeyEvent, Key> = {
  rules: {
    ApiKeyCreated: [
      {
        type: 'apikey.created',
        ofEvent: ({ id, data: { memberId, mode, name, scopes, clientIds, expiresAt } }) => ({
          ...{ apiKeyId: id, clientId: null, memberId, mode },
          ...{ name, scopes, clientIds, expiresAt },
        }),
      },
    ],
    ApiKeyRotated: [
      {
        type: 'apikey.rotated',
        ofStream: ({ id, data }, key) => ({
          apiKeyId: id,
          clientId: null,
          ...key,
          previousExpiresAt: data.previousUntil,
        }),
      },
    ],
    ApiKeyRevoked: [{ type: 'apikey.revoked', ofStream: ({ id }, key) => ({ apiKeyId: id, clientId: null, ...key }) }],
  },
  evolve: (subject, event) => {
    if (event.type !== 'ApiKeyCreated') return subject;
    const { memberId, mode } = event.data;
    return { memberId, mode };
  },
};

interface Invite {
  readonly clientId: string;
}

export const invitePublisher: Publisher<typeof invitePublic, InviteEvent, Invite> = {
  rules: {
    ConnectInviteCreated: [
      {
        type: 'invite.created',
        ofEvent: ({ id, data: { clientId, platforms, expiresAt, maxAccounts = defaultMaxAccounts } }) => ({
          ...{ inviteId: id, clientId, platforms, maxAccounts, expiresAt },
        }),
      },
    ],
    ConnectInviteUsed: [
      {
        type: 'invite.used',
        ofStream: ({ id, data: { accountId, platform } }, { clientId }) => ({
          ...{ inviteId: id, clientId, accountId, platform },
        }),
      },
    ],
    ConnectInviteRevoked: [
      {
        type: 'invite.revoked',
        ofStream: ({ id, data: { reason } }, { clientId }) => ({ inviteId: id, clientId, reason }),
      },
    ],
  },
  evolve: (subject, event) => (event.type === 'ConnectInviteCreated' ? { clientId: event.data.clientId } : subject),
};
