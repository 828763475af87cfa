import { setImmediate } from 'node:timers/promises';
import { within } from '#contracts/base/pause.ts';
import { account } from '#domain/account.ts';
import { approval } from '#domain/approval.ts';
import { campaign } from '#domain/campaign.ts';
import type { ErrorCode } from '#domain/codes.ts';
import { birthOf } from '#domain/decider.ts';
import { uuidv5 } from '#domain/ids.ts';
import { media } from '#domain/media.ts';
import { type PostState, post } from '#domain/post/post.ts';
import { target } from '#domain/post-target/target.ts';
import { isAtLeast, roleAllows } from '#domain/roles.ts';
import { accountsByIds } from '#projections/models/accounts.ts';
import { mediaByIds } from '#projections/models/media.ts';
import { postPlanning } from '#projections/queries/post-queries.ts';
import { clientsOfTargets } from '#projections/queries/target-queries.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import type { Scope } from '#schemas/apikey.ts';
import { roles } from '#schemas/common.ts';
import { grantableScopes } from '#schemas/grant.ts';
import type { CallPatience, Deps } from './deps.ts';
import { digestOfEntry, type Entry } from './entries.ts';
import {
  asksPast,
  type Call,
  type CalledState,
  type LimitRule,
  nounOf,
  type Operation,
  type Principal,
} from './operation.ts';
import { badParameter, invalid, Refusal, tooLate } from './refusal.ts';
import type { Wire } from './wire.ts';

/**
 * Steps of a call: what a principal may do at all. Each throws a Refusal 403; a call of an operation without a scope
 * passes.
 */

type Asking = Pick<CalledState, 'operation' | 'principal'>;

/** The scopes of a call: a question about the past needs that of auditors too. */
const scopesOf = ({ operation }: Asking, wire: Pick<Wire, 'hasParameter'>): readonly Scope[] => {
  if (operation.scope === null) return [];
  return asksPast(operation, wire) ? [operation.scope, 'events.read'] : [operation.scope];
};

/** The scopes of the credential. */
export const requireScope = (asking: Asking, wire: Pick<Wire, 'hasParameter'>): void => {
  const { principal } = asking;
  const scope = scopesOf(asking, wire).find((one) => principal?.scopes.includes(one) !== true);
  if (scope === undefined) return;
  const never = principal?.kind === 'oauth' && !grantableScopes.some((one) => one === scope);
  const detail = never ? ', which no app can be given: use an API key or a session' : '';
  throw new Refusal('insufficient_scope', `This operation needs the scope ${scope}${detail}.`);
};

/** The role of the member behind the credential: the ceiling of the role, then the rules of the operation. */
export const requireRole = (asking: Asking, wire: Pick<Wire, 'hasParameter'>): void => {
  const { operation, principal } = asking;
  const { role, firstParty } = operation;
  if (principal === null) return;
  for (const scope of scopesOf(asking, wire)) {
    if (!roleAllows(principal.role, scope)) {
      throw new Refusal('role_required', `The role ${principal.role} does not carry ${scope}.`);
    }
  }
  if (operation.scope === null) return;
  if (role !== undefined && !isAtLeast(principal.role, role)) {
    const above = roles.slice(0, roles.indexOf(role) + 1).join(' or ');
    throw new Refusal('role_required', `Only a member with the role ${above} may do this.`);
  }
  if (firstParty === true && principal.kind !== 'session') {
    throw new Refusal('first_party_only', 'Only the console may do this, with the session of a member.');
  }
};

/** Refuses what concerns the whole workspace to a credential that is limited to clients. */
export const requireOpenToLimited = ({ operation: { limited }, principal }: Asking): void => {
  if (principal !== null && principal.clientIds !== null && limited === 'refused') {
    throw new Refusal('client_limited', 'This concerns the whole workspace, and the credential is limited to clients.');
  }
};

/** Codes with which an operation may refuse a limited credential. */
export const limitCodesOf = (rule: LimitRule): readonly ErrorCode[] =>
  rule === 'refused' || rule === 'owned' ? ['client_limited'] : [];

/** As a filter of a list: nothing for a credential without a limit. */
export const withinLimit = ({ clientIds }: Pick<Principal, 'clientIds'>): { readonly clientIds?: readonly string[] } =>
  clientIds === null ? {} : { clientIds };

/** The rules of all operations, as the contract says them. */
export const limitWords = (operations: readonly Pick<Operation, 'id' | 'limited'>[]): string => {
  const listed = (rule: LimitRule): string =>
    operations.flatMap(({ id, limited }) => (limited === rule ? [`\`${id}\``] : [])).join(', ');
  return [
    '**Limited to clients.** An API key may be limited to clients of the workspace. For such a key an id of another client, or of anything that belongs to one, is an unknown id: 404 in a path, `unknown_id` in a body, no row in a list. A post is shown where its client and all clients whose accounts it goes to are among those of the key; a target where its client and that of its post are. Media that belong to no client can be seen and used in posts; a campaign of no client is unknown to such a key.',
    `Lists have only the rows of these clients: ${listed('filtered')}. For a key of several clients, name one in \`clientId\`: ${listed('one')}. An asset must belong to one of the clients, so \`clientId\` is required where it is made, and an asset of the whole workspace is refused with \`client_limited\`: ${listed('owned')}. So it is, too, for: ${listed('made')}.`,
    `What concerns the whole workspace is refused with \`client_limited\`: ${listed('refused')}.`,
  ].join('\n\n');
};

/**
 * The limit of a credential to clients, enforced in front of every operation. An id that the credential may not see is
 * replaced by one that nothing has: the operation then answers as for an unknown id, in the same words, and a repeat of
 * another credential's call is another call.
 */

type Kind = 'client' | 'account' | 'media' | 'post' | 'target' | 'approval' | 'campaign';

/** The member that would name the resource of the path in a body. */
const memberOfNoun: Readonly<Record<string, string>> = {
  client: 'clientId',
  account: 'accountId',
  media: 'assetId',
  post: 'postId',
  'post target': 'targetId',
  approval: 'approvalId',
  campaign: 'campaignId',
};

const kindOfMember: Readonly<Record<string, Kind>> = {
  clientId: 'client',
  clientIds: 'client',
  accountId: 'account',
  accountIds: 'account',
  socialAccountId: 'account',
  assetId: 'media',
  mediaIds: 'media',
  mediaIdsOverride: 'media',
  coverMediaId: 'media',
  postId: 'post',
  postIds: 'post',
  targetId: 'target',
  targetIds: 'target',
  approvalId: 'approval',
  campaignId: 'campaign',
};

/** Free-form members, in which a name means nothing. */
const freeForm: readonly string[] = ['overrides', 'mediaAltTexts', 'rules', 'brandVoice'];

/** The same value with each id that its member names replaced by what `visit` gives. */
const mapIds = (value: unknown, visit: (kind: Kind, id: string) => string, kind?: Kind): unknown => {
  if (typeof value === 'string') return kind === undefined ? value : visit(kind, value);
  if (Array.isArray(value)) return value.map((one) => mapIds(one, visit, kind));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      freeForm.includes(name) ? member : mapIds(member, visit, kindOfMember[name]),
    ]),
  );
};

type Sees = (clientId: string | null) => boolean;

interface Looking {
  readonly deps: Pick<Deps, 'store' | 'knex' | 'pool'>;
  /** Nothing is looked up after it, because the caller has its answer: as of `performance.now()`. */
  readonly until: number;
  readonly workspaceId: string;
  readonly sees: Sees;
}

/** Whether everything with these ids may be seen. What does not exist, or is another workspace's, is left to the operation. */
const seen: Readonly<Record<Kind, (looking: Looking, ids: readonly string[]) => Promise<ReadonlySet<string>>>> = {
  client: async ({ sees }, ids) => new Set(ids.filter(sees)),

  account: (looking, ids) => accountsOf(looking, ids, looking.sees),

  media: async (looking, ids) => {
    const { deps, workspaceId, sees } = looking;
    const rows = await mediaByIds(deps.knex, workspaceId, ids);
    return filtered(looking, ids, async (id) => {
      const clientId = rows.get(id)?.client_id ?? (await clientOfAsset(deps, id));
      return clientId !== undefined && sees(clientId);
    });
  },

  post: (looking, ids) =>
    filtered(looking, ids, async (id) => isPostSeen(looking, (await looking.deps.store.load(post, id)).state)),

  target: async (looking, ids) => {
    const { deps, workspaceId, sees } = looking;
    const rows = await clientsOfTargets(deps.knex, workspaceId, ids);
    return filtered(looking, ids, async (id) => {
      const known = rows.get(id);
      return known === undefined ? isTargetSeen(looking, id) : sees(known.clientId) && sees(known.postClientId);
    });
  },

  // It shows its post.
  approval: (looking, ids) =>
    filtered(looking, ids, async (id) => {
      const { state } = await looking.deps.store.load(approval, id);
      if (state.status === 'none') return false;
      return isPostSeen(looking, (await looking.deps.store.load(post, state.about.postId)).state);
    }),

  // One of no client may hold posts of any.
  campaign: (looking, ids) =>
    filtered(looking, ids, async (id) => {
      const { state } = await looking.deps.store.load(campaign, id);
      return state.status !== 'none' && state.clientId !== null && looking.sees(state.clientId);
    }),
};

/** Those that exist and whose client is meant. */
const accountsOf = async (
  looking: Looking,
  ids: readonly string[],
  isMeant: (clientId: string) => boolean,
): Promise<ReadonlySet<string>> => {
  const { deps, workspaceId } = looking;
  const rows = new Map((await accountsByIds(deps.knex, workspaceId, ids)).map((row) => [row.id, row.client_id]));
  return filtered(looking, ids, async (id) => {
    const known = rows.get(id);
    if (known !== undefined) return isMeant(known);
    const { state } = await deps.store.load(account, id);
    return state.status !== 'none' && isMeant(state.clientId);
  });
};

/** Streams that one call reads at once, of ids that the read models do not have. */
const width = 8;

const filtered = async (
  { until }: Looking,
  ids: readonly string[],
  isSeen: (id: string) => Promise<boolean>,
): Promise<ReadonlySet<string>> => {
  const found = new Set<string>();
  await inParallel(ids, width, async (id) => {
    if (performance.now() > until) tooLate();
    if (await isSeen(id)) found.add(id);
  });
  return found;
};

/** Null for an asset of the whole workspace, undefined for one that does not exist. */
const clientOfAsset = async ({ store }: Looking['deps'], id: string): Promise<string | null | undefined> => {
  const { state, events } = await store.load(media, id);
  if (state.status === 'none') return undefined;
  if ('details' in state) return state.details.clientId;
  // An upload that was never registered, also one that is deleted: its creation names the client.
  return (birthOf(media, events)?.data.clientId ?? null) as string | null;
};

const isPostSeen = async (looking: Looking, state: PostState): Promise<boolean> => {
  if (!('clientId' in state) || !looking.sees(state.clientId)) return false;
  if (state.status === 'live') return state.plan.targets.every(({ clientId }) => looking.sees(clientId));
  const ids = state.body.targetSelection.accountIds ?? [];
  // A draft may name accounts that nobody has: they belong to no other client.
  return (await accountsOf(looking, ids, (clientId) => !looking.sees(clientId))).size === 0;
};

/** Whether a post of the caller's workspace may be seen by its credential. */
export const seesPost = async (
  { deps, principal }: Pick<Call, 'deps' | 'principal'>,
  state: PostState,
): Promise<boolean> => {
  const { clientIds, workspaceId } = principal;
  if (clientIds === null) return true;
  const sees: Sees = (clientId) => clientId === null || clientIds.includes(clientId);
  return isPostSeen({ deps, workspaceId, sees, until: Number.POSITIVE_INFINITY }, state);
};

/** A target needs its own client and that of its post; one that its post has only planned, or without a row, too. */
const isTargetSeen = async ({ deps, workspaceId, sees }: Looking, id: string): Promise<boolean> => {
  const { state } = await deps.store.load(target, id);
  const postId = state.status === 'none' ? await postPlanning(deps.pool, workspaceId, id) : state.common.postId;
  if (postId === null) return false;
  const { state: whole } = await deps.store.load(post, postId);
  if (whole.status !== 'live' || !sees(whole.clientId)) return false;
  const clientId =
    state.status === 'none'
      ? whole.plan.targets.find(({ targetId }) => targetId === id)?.clientId
      : state.common.clientId;
  return clientId !== undefined && sees(clientId);
};

/**
 * Step of a call: replaces the ids that a limited credential may not see, and holds the call to the rule of its
 * operation.
 */
export const limitToClients = async (
  state: CalledState,
  _wire: unknown,
  { deps, patience: { callMs } }: { readonly deps: Deps; readonly patience: Pick<CallPatience, 'callMs'> },
): Promise<void> => {
  const { principal } = state;
  if (principal === null || principal.clientIds === null) return;
  const own = new Set(principal.clientIds);
  const looking: Looking = {
    deps,
    workspaceId: principal.workspaceId,
    until: performance.now() + callMs,
    sees: (clientId) => clientId === null || own.has(clientId),
  };
  await within(callMs, limit(looking, state, principal.clientIds), tooLate);
};

const limit = async (looking: Looking, state: CalledState, clientIds: readonly string[]): Promise<void> => {
  const { operation } = state;
  if (operation.scope === null) return;
  const rule = operation.limited;
  const params = state.params as Readonly<Record<string, string>>;
  const member = memberOfNoun[nounOf(operation)];
  const named = member === undefined || params.id === undefined ? {} : { [member]: params.id };

  const byKind = new Map<Kind, Set<string>>();
  const collect = (kind: Kind, id: string): string => {
    byKind.set(kind, (byKind.get(kind) ?? new Set()).add(id));
    return id;
  };
  for (const part of [named, state.query, state.body]) mapIds(part, collect);
  for await (const body of bodiesOf(state.entries)) mapIds(body, collect);
  const visible = new Map<Kind, ReadonlySet<string>>();
  for (const [kind, ids] of byKind) visible.set(kind, await seen[kind](looking, [...ids]));
  const unseen = new Map<string, string>();
  const hide = (kind: Kind, id: string): string => {
    if (visible.get(kind)?.has(id) === true) return id;
    const instead = uuidv5(id, 'unseen');
    unseen.set(instead, id);
    return instead;
  };
  state.unseen = unseen;

  if (rule === 'made') requireClient(state.body);
  if (rule === 'owned') await requireOwned(looking, state, named);
  const [id] = Object.values(mapIds(named, hide) as Record<string, string>);
  if (id !== undefined) state.params = { ...params, id };
  state.query = mapIds(state.query, hide);
  state.body = mapIds(state.body, hide);
  await limitEntries(state, operation, hide);
  if (rule === 'one') state.query = ofOneClient(state.query as Record<string, unknown>, clientIds);
};

/** Entries together may be large, so each has a turn of the event loop. */
async function* bodiesOf(entries: readonly Entry<unknown>[]): AsyncGenerator<unknown> {
  for (const entry of entries) {
    if ('refusal' in entry) continue;
    yield entry.body;
    await setImmediate();
  }
}

/** An entry with other ids is another entry, for a repeat of the call too: its digest in the body changes with it. */
const limitEntries = async (
  state: CalledState,
  { entries: member }: Operation,
  hide: (kind: Kind, id: string) => string,
): Promise<void> => {
  if (member === undefined) return;
  const digests = [...((state.body as Readonly<Record<string, readonly string[]>>)[member] ?? [])];
  const entries: Entry<unknown>[] = [];
  for (const [index, entry] of state.entries.entries()) {
    if ('refusal' in entry) {
      entries.push(entry);
      continue;
    }
    const body = mapIds(entry.body, hide);
    entries.push({ ...entry, body });
    digests[index] = digestOfEntry(body);
    await setImmediate();
  }
  state.entries = entries;
  state.body = { [member]: digests };
};

const ofOneClient = (query: Record<string, unknown>, clientIds: readonly string[]): Record<string, unknown> => {
  if (query.clientId !== undefined) return query;
  const [only, another] = clientIds;
  if (another !== undefined)
    throw badParameter('clientId', 'required', 'is required: the credential has several clients');
  return { ...query, clientId: only };
};

/** @throws Refusal 422 */
const requireClient = (body: unknown): void => {
  if ((body as { readonly clientId?: string } | undefined)?.clientId === undefined)
    throw invalid('/clientId', 'required', 'is required: the credential is limited to clients');
};

/** @throws Refusal for an asset of the whole workspace; 422 where a new asset is to have no client */
const requireOwned = async (
  { deps, workspaceId }: Looking,
  { body }: CalledState,
  named: Readonly<Record<string, string>>,
): Promise<void> => {
  const { assetId, clientId } = { ...(body as Readonly<Record<string, string>> | undefined), ...named };
  if (assetId === undefined) return requireClient({ clientId });
  const { events } = await deps.store.load(media, assetId);
  if (events[0]?.metadata.workspaceId === workspaceId && (await clientOfAsset(deps, assetId)) === null) {
    throw new Refusal('client_limited', 'The asset belongs to the whole workspace.');
  }
};

/** Whether a part of an answer names a client that the credential may not see. */
export const namesOther = (data: unknown, clientIds: readonly string[]): boolean => {
  if (Array.isArray(data)) return data.some((one) => namesOther(one, clientIds));
  if (typeof data !== 'object' || data === null) return false;
  return Object.entries(data).some(([name, member]) => {
    if (freeForm.includes(name)) return false;
    return name === 'clientId'
      ? typeof member === 'string' && !clientIds.includes(member)
      : namesOther(member, clientIds);
  });
};
