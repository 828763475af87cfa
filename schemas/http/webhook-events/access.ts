import { Type } from 'typebox';
import { apikeyEvents } from '#schemas/apikey.ts';
import { Mode, Platform, Uuid } from '#schemas/common.ts';
import { inviteEvents } from '#schemas/invite.ts';
import { said } from '#schemas/published.ts';
import { example, instants, noClient, publicEvent } from './common.ts';

/**
 * Events of API keys and of connect links: who may do what, and never the secret, its hash, the address of a link or
 * an e-mail address. Keys belong to the live workspace, whichever mode they act in: endpoints of the sandbox never get
 * an event of a key.
 */

const { name, scopes, expiresAt, clientIds } = apikeyEvents.ApiKeyCreated.properties;
const key = {
  apiKeyId: said(Uuid, 'Id of the key.'),
  ...noClient,
  memberId: said(Uuid, 'The member whose key it is.'),
  mode: said(
    Mode,
    'test: the key acts in the sandbox twin. Events of test keys go to endpoints of the live workspace.',
  ),
};
const exampleKey = {
  apiKeyId: example.apiKeyId,
  clientId: null,
  memberId: example.memberId,
  mode: 'live' as const,
};

export const apikeyPublic = {
  'apikey.created': publicEvent(
    'An operator made an API key. The event never holds the key itself.',
    Type.Object({
      ...key,
      name: said(name, 'Its name, for people.'),
      scopes: said(scopes, 'What it may do, within the role of its member.'),
      clientIds: said(clientIds, 'The clients to which it is limited; null: all clients of the workspace.'),
      expiresAt: said(expiresAt, 'When it stops working.'),
    }),
    {
      ...exampleKey,
      name: 'Newsroom',
      scopes: ['posts.read', 'posts.compose'],
      clientIds: null,
      expiresAt: instants.last,
    },
  ),
  'apikey.rotated': publicEvent(
    'An operator gave an API key a new secret; the former secret works for up to 24 hours more.',
    Type.Object({
      ...key,
      previousExpiresAt: said(expiresAt, 'When the former secret stops working.'),
    }),
    { ...exampleKey, previousExpiresAt: instants.last },
  ),
  'apikey.revoked': publicEvent(
    'An operator revoked an API key: it stops working at once.',
    Type.Object(key),
    exampleKey,
  ),
};

const invite = {
  inviteId: said(Uuid, 'Id of the link.'),
  clientId: said(Uuid, 'The client to which accounts are connected.'),
};
const exampleInvite = { inviteId: example.inviteId, clientId: example.clientId };
const created = inviteEvents.ConnectInviteCreated.properties;

export const invitePublic = {
  'invite.created': publicEvent(
    'A caller made a link that connects accounts to a client. The event never holds the link itself.',
    Type.Object({
      ...invite,
      platforms: said(created.platforms, 'The networks whose accounts may be connected.'),
      maxAccounts: Type.Integer({ minimum: 1, maximum: 1_000, description: 'Accounts that it may connect at most.' }),
      expiresAt: said(created.expiresAt, 'When it stops working.'),
    }),
    { ...exampleInvite, platforms: ['bluesky', 'threads'], maxAccounts: 50, expiresAt: instants.last },
  ),
  'invite.used': publicEvent(
    'A person connected an account through a link. The event comes once for each account of the link.',
    Type.Object({
      ...invite,
      accountId: said(Uuid, 'Id of the connected account.'),
      platform: said(Platform, 'The network of the account.'),
    }),
    { ...exampleInvite, accountId: example.accountId, platform: 'bluesky' },
  ),
  'invite.revoked': publicEvent(
    'A link was revoked before its end: nobody can connect an account through it any more.',
    Type.Object({
      ...invite,
      reason: said(
        inviteEvents.ConnectInviteRevoked.properties.reason,
        'Why it was revoked; null: no reason was given.',
        {
          examples: ['client_archived'],
        },
      ),
    }),
    { ...exampleInvite, reason: 'client_archived' },
  ),
};
