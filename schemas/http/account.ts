import { type Static, Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { Named, OpenEnum, said } from '#schemas/published.ts';
import { asOfQuery, Maybe, PlatformInput, paging, QueryText, stamps, UuidInput } from './common.ts';

/** A connected account, as callers see it. */

const Status = OpenEnum(
  'AccountStatus',
  ['connected', 'reauth_required', 'disconnected'],
  'connected: posts can go to it; reauth_required: the network refuses its authorization, and a person must connect it again; disconnected: nothing goes to it until a person connects it again.',
);
const HealthState = OpenEnum(
  'AccountHealthState',
  ['ok', 'reauth_required', 'disconnected'],
  'ok: the network accepts our calls; reauth_required: the network refuses the authorization of the account; disconnected: the account was disconnected.',
);
const Health = Named(
  'AccountHealth',
  Type.Object(
    {
      state: said(HealthState, 'Whether the account works.'),
      reason: said(Nullable(Type.String()), 'Why it does not work, in words for a person; null where it does.'),
      checkedAt: said(
        Instant,
        'When the state last became known: when the account was authorized, refused or disconnected.',
      ),
    },
    { description: 'Whether a connected account works.' },
  ),
);
const Capabilities = Named(
  'AccountCapabilities',
  Type.Object(
    {
      thread: Type.Boolean({ description: 'It takes a `thread`: a chain of replies.' }),
      firstComment: Type.Boolean({
        description:
          'The network takes a `firstComment` under a published post. On instagram, facebook and youtube the connection needs the permission to comment.',
      }),
      native: Type.Boolean({
        description: 'The network has a scheduler of its own, which takes posts with `scheduleMode: native`.',
      }),
      textOnly: Type.Boolean({ description: 'A post without media is possible.' }),
      altText: Type.Boolean({ description: 'It takes texts for people who do not see a picture.' }),
      cover: Type.Boolean({ description: 'It takes `coverMediaId`: a separately uploaded cover of a video.' }),
      aiLabel: Type.Boolean({ description: 'The network has a label of its own for content made with AI.' }),
    },
    { description: 'What the network of an account takes; all accounts of a network have the same.' },
  ),
);

export const AccountQuery = Type.Object({
  ...paging,
  ...asOfQuery,
  clientId: Maybe(said(UuidInput, 'Only accounts of this client.')),
  platform: Maybe(
    Type.Array(PlatformInput, {
      minItems: 1,
      maxItems: 20,
      description: 'Only accounts on this network, or on one of several with commas.',
    }),
  ),
});

const erased = 'null once the client was erased';

export const Account = Named(
  'Account',
  Type.Object(
    {
      id: said(Uuid, 'Id of the account; connecting it to the same client again keeps it.'),
      object: Type.Literal('account', { description: 'The kind of resource.' }),
      clientId: said(Uuid, 'The client that it belongs to.'),
      platform: said(Platform, 'Its network.'),
      externalId: Type.String({
        description: 'Its id on the network.',
        examples: ['did:plc:ewvi7nxzyoun6zhxrhs64oiz'],
      }),
      username: said(Nullable(Type.String()), `Its name on the network, without an @; ${erased}.`, {
        examples: ['acme.example'],
      }),
      displayName: said(Nullable(Type.String()), `The name that the network shows to people; ${erased}.`, {
        examples: ['Acme'],
      }),
      avatarUrl: said(Nullable(Type.String()), 'Address of its picture; null: none is known.'),
      timezone: said(
        Nullable(Type.String()),
        'IANA zone of the wall-clock times of its targets, set on the page of the connect link; null: that of its client, else of the post.',
        { examples: ['Europe/Berlin'] },
      ),
      status: said(Status, 'Whether posts can go to it.'),
      health: said(Health, 'Whether the network accepts calls for it, and why not.'),
      scopes: Type.Array(Type.String(), {
        description:
          'The rights that a person granted on the network, in the words of the network. A tiktok account has `privacy_level.<level>` for each privacy level that it allows.',
        examples: [['sandbox.publish', 'sandbox.read']],
      }),
      expiresAt: said(Nullable(Instant), 'When the authorization ends; null where the network names no end.'),
      capabilities: said(Capabilities, 'What its network takes.'),
      ...stamps,
    },
    { description: 'An account on a social network that a person connected to a client.' },
  ),
);
export type Account = Static<typeof Account>;

export const AccountOptionQuery = Type.Object({
  ...paging,
  search: Maybe(QueryText('Only options whose label contains this, ignoring case.')),
});

export const AccountOption = Named(
  'AccountOption',
  Type.Object(
    {
      value: Type.String({
        description: 'The value as the override of a variant takes it.',
        examples: ['549755885175'],
      }),
      label: Type.String({ description: 'Its name, as the network shows it to people.', examples: ['Recipes'] }),
      about: said(
        Nullable(Type.String()),
        'What tells it from others of that name, in the words of the network, such as who sees a board; null: the network tells nothing.',
        { examples: ['PUBLIC'] },
      ),
    },
    { description: 'A value that a connected account may choose.' },
  ),
);
