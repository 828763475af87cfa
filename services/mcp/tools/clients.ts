import { type Static, Type } from 'typebox';
import { platforms } from '#schemas/common.ts';
import type { Account as AccountSchema } from '#schemas/http/account.ts';
import type { AccountCadence as CadenceSchema } from '#schemas/http/cadence.ts';
import type { Client as ClientSchema } from '#schemas/http/client.ts';
import type { ConnectInvite as InviteSchema } from '#schemas/http/invite.ts';
import type { ToolCall } from '../call.ts';
import { changes, publishes, reads, tool } from '../tool.ts';
import {
  Args,
  Bare,
  Id,
  joined,
  Maybe,
  Mode,
  many,
  moreOf,
  Next,
  NextCursor,
  Nullable,
  PlainKey,
  Platforms,
  pageOf,
  paging,
  plainPaging,
  Replayed,
  replayedWords,
  Text,
} from '../words.ts';
import { defined } from './composing.ts';
import { LinkAction, linkOutput, linksAnswer, madeLink, named } from './links.ts';

/** The clients of the workspace and their accounts: what every other tool needs the ids of. */

type Client = Static<typeof ClientSchema>;
type Account = Static<typeof AccountSchema>;
type Cadence = Static<typeof CadenceSchema>;

/** Words of a name as a person says it: “the Berlin bakery” may be “Bakery Berlin Mitte”. */
const maxWords = 4;
const wordsOf = (search: string): readonly string[] =>
  [...new Set(search.toLowerCase().split(/[^\p{L}\p{N}]+/u))]
    .filter((word) => word.length > 3)
    .filter((_, at) => at < maxWords);

interface Search {
  readonly search?: string;
  readonly archived?: boolean;
  readonly limit: number;
}

/** Those whose name has the words in another order, the best fit first; of a single word there is no other order. */
const byWords = async (call: ToolCall, { search = '', archived, limit }: Search): Promise<readonly Client[]> => {
  const words = wordsOf(search);
  const found = new Map<string, Client>();
  for (const word of words.length === 1 && words[0] === search.toLowerCase() ? [] : words) {
    const { data } = await call.invoke<Client[]>('listClients', { query: { search: word, archived, limit } });
    for (const one of data) found.set(one.id, one);
  }
  const fit = ({ name }: Client): number => words.filter((word) => name.toLowerCase().includes(word)).length;
  const best = Math.max(0, ...[...found.values()].map(fit));
  return call.cuts.rows(
    'clients',
    [...found.values()].filter((one) => fit(one) === best),
    limit,
  );
};

export const findClients = tool({
  name: 'find_clients',
  title: 'Find clients',
  description:
    'Finds the clients (brands) of the workspace by part of their name, and answers their ids, time zone and whether their posts need approval. Without search it lists all, newest first.',
  scopes: ['clients.read'],
  hints: reads,
  input: Args({
    search: Maybe(Text(200, 'Part of the name, ignoring case.')),
    archived: Maybe(Type.Boolean({ description: 'True: only archived clients. Default: only clients in use.' })),
    ...paging,
  }),
  output: Type.Object({
    mode: Mode,
    clients: Type.Array(
      Type.Object({
        clientId: Type.String(),
        name: Type.String(),
        type: Type.String(),
        timezone: Nullable(Type.String(), 'Null: the zone of the workspace.'),
        approvalRequired: Type.Boolean(),
        accountCount: Type.Integer(),
        archivedAt: Nullable(Type.String()),
      }),
    ),
    nextCursor: NextCursor,
    nextStep: Next,
  }),
  run: async (call, { search, archived, ...page }) => {
    const asked = { ...defined({ search, archived }), ...pageOf(page) };
    const { data, page: at } = await call.invoke<Client[]>('listClients', { query: asked });
    const near = data.length === 0 && page.cursor === undefined ? await byWords(call, asked) : [];
    const clients = [...data, ...near].map(
      ({ id, name, type, timezone, approvalRequired, accountCount, archivedAt }) => ({
        clientId: id,
        ...{ name, type, timezone, approvalRequired, accountCount, archivedAt },
      }),
    );
    const nextCursor = at?.nextCursor ?? null;
    const nextStep =
      clients.length === 0
        ? 'No client fits. Try a shorter part of the name, or ask the person.'
        : 'Use the clientId with find_accounts, compose_post or analytics_summary.';
    const lines = clients.map(
      ({ clientId, name, accountCount, approvalRequired, timezone }) =>
        `- ${call.cuts.quoted('name', name)} (clientId ${clientId}): ${many(accountCount, 'account')}, ${timezone ?? 'zone of the workspace'}${approvalRequired ? ', posts need approval' : ''}`,
    );
    const text = joined(
      `${many(clients.length, 'client')} in the ${call.mode} workspace.`,
      near.length > 0 ? 'No name has the search as it is; these have its words: ask the person if in doubt.' : null,
      ...lines,
      moreOf(nextCursor),
      nextStep,
    );
    return { text, data: { mode: call.mode, clients, nextCursor, nextStep } };
  },
});

const Limit = Type.Object({
  name: Type.String(),
  limit: Type.Integer(),
  used: Type.Integer(),
  remaining: Type.Integer(),
  resetsAt: Nullable(Type.String()),
});
type Limits = ReadonlyMap<string, readonly Static<typeof Limit>[]>;

type LimitQuery = Readonly<Record<'clientId' | 'platform' | 'limit' | 'cursor', unknown>>;

/** The limits by account: the list of them has the rows and pages of the list of accounts. */
const limitsOf = async (call: ToolCall, query: LimitQuery): Promise<Limits> => {
  const { data } = await call.invoke<Cadence[]>('listAccountCadences', { query });
  return new Map(
    data.map(({ accountId, windows }) => [
      accountId,
      windows.map(({ name, limit, used, remaining, resetsAt }) => ({ name, limit, used, remaining, resetsAt })),
    ]),
  );
};

/** How many targets are counted to say what is due: of more, nothing is said. */
const maxDue = 100;
const waiting = ['pending', 'awaiting_approval', 'handed_to_platform', 'publishing', 'processing', 'rate_limited'];

/** Null where it is not known: the credential may not read posts, or more are due than are counted. */
const dueOf = async (
  call: ToolCall,
  { clientId, platform }: LimitQuery,
): Promise<ReadonlyMap<string, number> | null> => {
  if (!call.may('posts.read')) return null;
  const to = new Date((await call.workspaceNow()) + 86_400_000).toISOString();
  const query = { clientId, platform, status: waiting, to, limit: maxDue };
  const { data, page } = await call.invoke<{ readonly accountId: string }[]>('listPostTargets', { query });
  if (page?.nextCursor != null) return null;
  const due = new Map<string, number>();
  for (const { accountId } of data) due.set(accountId, (due.get(accountId) ?? 0) + 1);
  return due;
};

const limitWords = (limits: readonly Static<typeof Limit>[] | null, due: number | null): string => {
  if (limits === null) return '';
  const words = limits.map(({ name, limit, remaining }) => `${remaining} of ${limit} in ${name} left`);
  const taken = due === null ? 'find_targets has what is due' : `${due} due within 24 hours take from that`;
  return limits.length === 0 ? ', no limit of the network is known' : `, ${words.join(', ')} (${taken})`;
};

const stateWords: Readonly<Record<string, string>> = {
  connected: 'ready',
  reauth_required: 'a person must connect it again',
  disconnected: 'disconnected: nothing goes to it',
};

export const findAccounts = tool({
  name: 'find_accounts',
  title: 'Find connected accounts',
  description:
    'Lists the social media accounts that are connected, of one client or of all: network, name, whether posts can go to it, and what the network takes. It tells where a post can go, and why an account does not work.',
  scopes: ['accounts.read'],
  hints: reads,
  input: Args({
    clientId: Maybe(Id()),
    platforms: Maybe(Platforms()),
    limits: Maybe(
      Type.Boolean({ description: 'True: also how often each may still publish (“five more times today?”).' }),
    ),
    ...plainPaging,
  }),
  output: Type.Object({
    mode: Mode,
    accounts: Type.Array(
      Type.Object({
        accountId: Type.String(),
        clientId: Type.String(),
        platform: Type.String(),
        username: Nullable(Type.String()),
        displayName: Nullable(Type.String()),
        status: Type.String({ description: 'connected, reauth_required or disconnected.' }),
        problem: Nullable(Type.String()),
        timezone: Nullable(Type.String(), 'Null: that of its client.'),
        takes: Type.Array(Type.String(), { description: 'What its network takes beside a post: thread, textOnly, …' }),
        limits: Nullable(Type.Array(Limit), 'Null: not asked for.'),
        dueWithin24Hours: Nullable(Type.Integer(), 'Targets that take from the limits as well.'),
      }),
    ),
    nextCursor: NextCursor,
    nextStep: Next,
  }),
  run: async (call, { clientId, platforms, limits: isAsked = false, ...page }) => {
    const query = { clientId, platform: platforms, ...pageOf(page) };
    const { data, page: at } = await call.invoke<Account[]>('listAccounts', { query });
    const limits = isAsked ? await limitsOf(call, query) : null;
    const due = isAsked ? await dueOf(call, query) : null;
    const accounts = data.map(({ id, health, capabilities, ...account }) => ({
      accountId: id,
      clientId: account.clientId,
      platform: account.platform,
      username: account.username,
      displayName: account.displayName,
      status: account.status,
      problem: health.reason,
      timezone: account.timezone,
      takes: Object.entries(capabilities).flatMap(([name, is]) => (is ? [name] : [])),
      limits: limits === null ? null : [...(limits.get(id) ?? [])],
      dueWithin24Hours: due === null ? null : (due.get(id) ?? 0),
    }));
    const nextCursor = at?.nextCursor ?? null;
    const ready = accounts.filter(({ status }) => status === 'connected').length;
    const nextStep =
      accounts.length === 0
        ? 'No account is connected here. connect_link makes the page on which accounts are connected.'
        : isAsked
          ? 'whoami has the quota of the month, which all accounts share.'
          : 'Use the accountIds, or the networks as platforms, with compose_post.';
    const lines = accounts.map(
      ({ accountId, platform, username, status, timezone, limits: own, dueWithin24Hours }) =>
        `- ${platform} ${call.cuts.quoted('username', username ?? 'erased')} (accountId ${accountId}): ${stateWords[status] ?? status}, ${timezone ?? 'zone of its client'}${limitWords(own, dueWithin24Hours)}`,
    );
    const text = joined(
      `${many(accounts.length, 'account')}, ${ready} of them ready (${call.mode}).`,
      ...lines,
      moreOf(nextCursor),
      nextStep,
    );
    return { text, data: { mode: call.mode, accounts, nextCursor, nextStep } };
  },
});

export const confirmAccount = tool({
  name: 'confirm_account',
  title: 'Confirm an account after a restore',
  description:
    'Only after an answer restore_unconfirmed, and only when the person says that they looked at the account on its network: what is still to be sent there is not out. What the answer was about can then be done again.',
  scopes: ['posts.compose'],
  hints: publishes,
  input: Args({ accountId: Id('The account that the person looked at.') }),
  output: Type.Object({ mode: Mode, accountId: Type.String(), nextStep: Next }),
  run: async (call, { accountId }) => {
    await call.invoke<Account>('confirmRestoredAccount', { params: { id: accountId } });
    const nextStep = 'Call again what was refused.';
    return {
      text: joined(`The account ${accountId} is confirmed.`, nextStep),
      data: { mode: call.mode, accountId, nextStep },
    };
  },
});

type Invite = Static<typeof InviteSchema>;

export const createClient = tool({
  name: 'create_client',
  title: 'Make a client',
  description: 'Makes a client (brand). If one has this name already, it is answered as it is. connect_link is next.',
  scopes: ['clients.manage'],
  hints: changes,
  input: Args({
    name: Type.String(),
    type: Maybe(Type.Enum(['brand', 'influencer'])),
    timezone: Maybe(Type.String()),
    approvalRequired: Maybe(Type.Boolean()),
    idempotencyKey: PlainKey,
  }),
  output: Type.Object({
    mode: Mode,
    clientId: Type.String(),
    replayed: Replayed,
    nextStep: Next,
  }),
  run: async (call, { idempotencyKey: _, type = 'brand', ...args }) => {
    const asked = { body: { ...defined(args), type }, key: call.key('create') };
    const { data, replayed } = await call.invoke<Client>('createClient', asked);
    const nextStep = 'connect_link makes the page on which its accounts are connected.';
    const text = joined(
      `The client ${call.cuts.quoted('name', data.name)} (clientId ${data.id}, ${call.mode}).`,
      replayedWords(replayed),
      nextStep,
    );
    return { text, data: { mode: call.mode, clientId: data.id, replayed, nextStep } };
  },
});

/** The newest of a client: none works longer than a week. */
const maxLinks = 50;

const inviteLine = ({ inviteId, expiresAt, isRevoked, accountIds, createdBy, ...invite }: Invite): string =>
  `linkId ${inviteId}: until ${expiresAt}${isRevoked ? ', revoked' : ''}, ${invite.platformsRequested.join(', ')}, ${accountIds.length} of ${invite.maxAccounts} accounts, by ${createdBy.type} ${createdBy.id}${invite.recipientEmail === null ? '' : `, for ${JSON.stringify(invite.recipientEmail)}`}`;

export const connectLink = tool({
  name: 'connect_link',
  title: 'A link that connects accounts',
  description:
    'Makes a page on which somebody connects their social accounts to a client. Give the address to the person, who sends it: who has it can connect.',
  scopes: ['accounts.connect'],
  hints: { ...publishes, idempotentHint: false },
  input: Args({
    clientId: Id(),
    ...Bare({
      action: LinkAction,
      linkId: Maybe(Id()),
      platforms: Maybe(Platforms('')),
      expiresInHours: Maybe(Type.Integer()),
    }),
    idempotencyKey: PlainKey,
  }),
  output: linkOutput({}),
  run: async (
    call,
    { clientId: id, action = 'create', linkId, platforms: wanted = [...platforms], expiresInHours },
  ) => {
    if (action === 'list') {
      const asked = { params: { id }, query: { limit: maxLinks } };
      const { data, page } = await call.invoke<Invite[]>('listConnectInvites', asked);
      return linksAnswer(call, {}, data.map(inviteLine), page?.hasMore === true);
    }
    if (action === 'revoke') {
      const params = { id, inviteId: named('linkId', linkId) };
      return linksAnswer(call, {}, [inviteLine((await call.invoke<Invite>('revokeConnectInvite', { params })).data)]);
    }
    const asked = { params: { id }, body: defined({ platforms: wanted, expiresInHours }), key: call.key('create') };
    const { data, replayed } = await call.invoke<Invite>('createConnectInvite', asked);
    const nextStep = 'Give the address to the person. find_accounts has the accounts once they are connected.';
    const text = `The page for client ${id} (${call.mode}), until ${data.expiresAt}: ${data.url ?? 'it has expired or was revoked'}`;
    return madeLink(call, {}, { ...data, id: data.inviteId, replayed, text, nextStep });
  },
});
