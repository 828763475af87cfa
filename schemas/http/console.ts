import { Type } from 'typebox';
import { ClientIds, Instant, Mode, maxLimitClients, Nullable, Role, roles, Uuid } from '#schemas/common.ts';
import { maxEmail, maxPersonName } from '#schemas/person.ts';
import { ClosedEnum, Named, OpenEnum, said } from '#schemas/published.ts';
import { scopes } from '../apikey.ts';
import { InstantInput, Maybe, UuidInput } from './common.ts';

/** What members do in the console: keys, the team, connected apps, sessions. */

const name = (description: string, examples: readonly string[]) =>
  Type.String({ minLength: 1, maxLength: 200, description, examples: [...examples] });
const roleWords = 'What a member may do, from the most to the least.';
const RoleInput = ClosedEnum('RoleInput', roles, roleWords);
const ModeInput = ClosedEnum('ModeInput', ['live', 'test'], 'test: the sandbox of the workspace.');
const ScopeInput = ClosedEnum('ScopeInput', scopes, 'A kind of operation that a credential may carry out.');
const ScopeShown = OpenEnum('Scope', scopes, 'A kind of operation that a credential may carry out.');

export const ApiKeyCreate = Named(
  'ApiKeyCreate',
  Type.Object(
    {
      name: name('What you call it.', ['Newsroom importer']),
      mode: said(ModeInput, 'Whether it acts in the live workspace or in its sandbox.'),
      scopes: Type.Array(ScopeInput, {
        minItems: 1,
        maxItems: scopes.length,
        description: 'What it may do: each must be one that your role carries.',
      }),
      clientIds: Maybe(
        Type.Array(UuidInput, {
          minItems: 1,
          maxItems: maxLimitClients,
          description: 'The clients to which it is limited; absent: all of the workspace.',
        }),
      ),
      expiresAt: InstantInput('When it stops working: within a year.'),
    },
    { description: 'An API key as it is created.' },
  ),
);

const keySecret = Type.Optional(
  said(
    Type.String(),
    'The whole key, in the answers to creation and rotation alone: store it. No call shows it again.',
    {
      examples: ['sk_test_<49 characters>'],
    },
  ),
);

export const ApiKeyShown = Named(
  'ApiKey',
  Type.Object(
    {
      id: said(Uuid, 'Id of the key.'),
      object: Type.Literal('api_key', { description: 'The kind of resource.' }),
      name: name('What you call it.', ['Newsroom importer']),
      mode: said(Mode, 'Whether it acts in the live workspace or in its sandbox.'),
      prefix: said(Type.String(), 'How the key begins.', { examples: ['sk_test_Ab3d'] }),
      memberId: said(Uuid, 'The member for whom it acts: it never may more than the role of that member.'),
      scopes: Type.Array(ScopeShown, { description: 'What it may do, as far as the role of its member carries it.' }),
      clientIds: said(Nullable(ClientIds), 'The clients to which it is limited; null: all of the workspace.'),
      createdAt: said(Instant, 'When it was created.'),
      expiresAt: said(Instant, 'When it stops working.'),
      previousUntil: said(
        Nullable(Instant),
        'Until when the key before its last rotation works as well; null: it was never rotated.',
      ),
      lastUsedAt: said(Nullable(Instant), 'When it was last used, to within a minute; null: never.'),
      revokedAt: said(Nullable(Instant), 'When it was revoked; null: it was not.'),
      secret: keySecret,
    },
    { description: 'An API key, without the key itself.' },
  ),
);

export const MemberShown = Named(
  'Member',
  Type.Object(
    {
      id: said(Uuid, 'Id of the member.'),
      object: Type.Literal('member', { description: 'The kind of resource.' }),
      name: said(Type.String(), 'The name of the person, or what an operator called the member.', {
        examples: ['Olga Owner'],
      }),
      email: said(Nullable(Type.String()), 'The address of the person; null: nobody signs in as the member.', {
        examples: ['olga@agency.example'],
      }),
      emailProvenAt: said(
        Nullable(Instant),
        'When it was proven that the person has this address; null: it is not, or nobody signs in as the member.',
      ),
      role: said(Role, 'What the member may do.'),
      personId: said(Nullable(Uuid), 'The person who signs in as the member; null: nobody.'),
    },
    { description: 'A member of the workspace.' },
  ),
);

export const leftKinds = ['api_key', 'connect_invite', 'approval_link', 'webhook', 'recycle'] as const;
export type LeftKind = (typeof leftKinds)[number];

export const LeftBehind = Named(
  'LeftBehind',
  Type.Object(
    {
      object: Type.Literal('left_behind', { description: 'The kind of resource.' }),
      kind: said(
        OpenEnum('LeftKind', leftKinds, 'A kind of what a member makes.'),
        'What it is; recycle: the recycling of a post.',
      ),
      id: said(Uuid, 'Id of the key, link, endpoint or post.'),
      parentId: said(
        Nullable(Uuid),
        'The client of a connect link, the request for approval of an approval link; null for the others.',
      ),
      mode: said(Mode, 'Whether it is of the live workspace or of its sandbox.'),
      name: said(Type.String(), 'What tells it from others: a name, networks, an address or a post.', {
        examples: ['bluesky, threads'],
      }),
      expiresAt: said(Nullable(Instant), 'When it ends by itself; null: it does not.'),
    },
    { description: 'Something that a member made and that has not ended.' },
  ),
);

export const MemberRoleChange = Named(
  'MemberRoleChange',
  Type.Object({ role: said(RoleInput, 'The role from now on.') }, { description: 'Another role for a member.' }),
);

export const TeamInviteCreate = Named(
  'TeamInviteCreate',
  Type.Object(
    {
      email: Maybe(
        Type.String({
          minLength: 3,
          maxLength: maxEmail,
          description: 'The address of the person: the link then works for this address alone. Absent: for any.',
          examples: ['ann@agency.example'],
        }),
      ),
      name: Maybe(
        Type.String({
          minLength: 1,
          maxLength: maxPersonName,
          description: 'The name of the person.',
          examples: ['Ann'],
        }),
      ),
      role: said(RoleInput, 'The role of the new member.'),
      expiresInHours: Maybe(
        Type.Integer({ minimum: 1, maximum: 720, description: 'Hours until the link ends; default 168.' }),
      ),
    },
    { description: 'An invitation to the team as it is created.' },
  ),
);

export const TeamInviteShown = Named(
  'TeamInvite',
  Type.Object(
    {
      id: said(Uuid, 'Id of the invitation.'),
      object: Type.Literal('team_invite', { description: 'The kind of resource.' }),
      memberId: said(Uuid, 'Id of the member that the person becomes.'),
      email: said(Nullable(Type.String()), 'The address for which the link works; null: for any.', {
        examples: ['ann@agency.example'],
      }),
      role: said(Role, 'The role of the new member.'),
      createdAt: said(Instant, 'When it was created.'),
      expiresAt: said(Instant, 'When the link ends.'),
      url: Type.Optional(
        said(Type.String(), 'The link, in the answer to the creation alone. A person who has it can join.', {
          examples: ['https://console.example/join/<token>'],
        }),
      ),
      mailed: Type.Optional(
        Type.Boolean({ description: 'In the answer to the creation alone: whether the link is on its way by mail.' }),
      ),
    },
    { description: 'An open invitation to the team.' },
  ),
);

export const AppShown = Named(
  'ConnectedApp',
  Type.Object(
    {
      id: said(Uuid, 'Id of the access that was given.'),
      object: Type.Literal('connected_app', { description: 'The kind of resource.' }),
      clientId: said(Type.String(), 'The OAuth client_id of the app.', { examples: ['2YotnFZFEjr1zCsicMWpAA'] }),
      clientName: said(Type.String(), 'What the app calls itself: nobody has checked it.', { examples: ['An agent'] }),
      memberId: said(Uuid, 'The member for whom it acts.'),
      mode: said(Mode, 'Whether it acts in the live workspace or in its sandbox.'),
      scopes: Type.Array(ScopeShown, { description: 'What it may do, as far as the role of the member carries it.' }),
      resource: said(Type.String(), 'Where its tokens work: the address of this API, or of the MCP server.', {
        examples: ['https://api.example/mcp'],
      }),
      givenAt: said(Instant, 'When the member allowed it.'),
      expiresAt: said(Instant, 'When it has to ask again.'),
      lastUsedAt: said(Nullable(Instant), 'When it last called, to within a minute; null: never.'),
      revokedAt: said(Nullable(Instant), 'When its access ended; null: it goes on.'),
    },
    { description: 'An app that a member has given access.' },
  ),
);

export const SessionShown = Named(
  'ConsoleSession',
  Type.Object(
    {
      id: said(Uuid, 'Id of the session.'),
      object: Type.Literal('session', { description: 'The kind of resource.' }),
      device: said(Type.String(), 'The browser, as it calls itself.', { examples: ['Firefox on Linux'] }),
      address: said(Type.String(), 'The address that signed in.', { examples: ['192.0.2.7'] }),
      createdAt: said(Instant, 'When the person signed in.'),
      lastUsedAt: said(Instant, 'When it was last used, to within a minute.'),
      expiresAt: said(Instant, 'When it ends at the latest.'),
      current: Type.Boolean({ description: 'Whether it is the one that asks.' }),
    },
    { description: 'A browser in which you are signed in.' },
  ),
);
