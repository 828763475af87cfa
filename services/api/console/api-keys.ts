import { Rejection } from '#domain/decider.ts';
import { roleAllows } from '#domain/roles.ts';
import { recentApiKeys } from '#projections/models/apikeys.ts';
import { freePlace, maxKeys, takePlace } from '#projections/queries/credential-places.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { IdParams } from '#schemas/http/common.ts';
import { ApiKeyCreate, ApiKeyShown } from '#schemas/http/console.ts';
import {
  createApiKey as create,
  revokeApiKey as revoke,
  rotateApiKey as rotate,
} from '#services/workflows/provision.ts';
import { wholeList } from '../call/cursor.ts';
import { operation } from '../call/operation.ts';
import { invalid, Refusal } from '../call/refusal.ts';
import { lastUsesOf } from '../callers/bearer-tokens.ts';
import { exampleApiKey, ownKey, requireProvenMember, showKey, untilAccepted } from './keys.ts';
import { consoleTag, membersOf, operatorOf } from './team.ts';

export const rotateApiKey = operation({
  id: 'rotateApiKey',
  method: 'POST',
  path: '/api-keys/{id}/rotate',
  tag: consoleTag,
  summary: 'Rotate an API key',
  description:
    'Makes a new key with the same powers and shows it once. The former one works for another 24 hours, at most until it expires. Owners rotate every key, Managers their own: a reader of the new key has the power of its member. A repeat of the call rotates again.',
  scope: 'agency.read',
  limited: 'refused',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: ApiKeyShown,
  codes: [],
  example: { data: { ...exampleApiKey, secret: 'sk_test_<49 characters>' } },
  handle: async (call) => {
    const { principal, params } = call;
    await requireProvenMember(call);
    const { key, lastUsedAt } = await ownKey(call, params.id);
    // The new key acts for the member of the former one, with the role that this member has or will have. The stream
    // knows who is an Owner now; the read models may be behind.
    const isOwn = key.memberId === principal.memberId;
    if (!isOwn && (await membersOf(call))[principal.memberId]?.role !== 'owner') {
      throw new Refusal('role_required', 'Only an owner may rotate the key of another member.');
    }
    const { prefix, previousUntil, secret } = await rotate(operatorOf(call), principal.liveWorkspaceId, params.id);
    await untilAccepted(call);
    return { data: { ...showKey(key, lastUsedAt), prefix, previousUntil, secret } };
  },
});

export const createApiKey = operation({
  id: 'createApiKey',
  method: 'POST',
  path: '/api-keys',
  tag: consoleTag,
  summary: 'Create an API key',
  description:
    'The key acts for you: it never may more than your role carries at the time of a call. Where this installation sends mails, you have confirmed your address first. The answer shows it once. A repeat of the call makes another key.',
  scope: 'agency.read',
  limited: 'refused',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  body: ApiKeyCreate,
  answer: ApiKeyShown,
  codes: ['too_many_keys'],
  example: {
    body: { name: 'Newsroom importer', mode: 'test', scopes: ['posts.read'], expiresAt: '2027-01-31T08:00:00Z' },
    data: { ...exampleApiKey, scopes: ['posts.read'], secret: 'sk_test_<49 characters>' },
  },
  handle: async (call) => {
    const { principal, body, now } = call;
    await requireProvenMember(call);
    const above = body.scopes.findIndex((scope) => !roleAllows(principal.role, scope));
    if (above >= 0)
      throw invalid(`/scopes/${above}`, 'not_allowed', `must be one that the role ${principal.role} carries`);
    const { name, mode, clientIds = null } = body;
    const expiresAt = new Date(body.expiresAt).toISOString();
    const { liveWorkspaceId: workspaceId, memberId } = principal;
    const scopes = [...new Set(body.scopes)];
    const wanted = { ...{ workspaceId, memberId, name, mode, scopes, expiresAt }, clientIds };
    const keyId = uuidv7();
    const place = { workspaceId, id: keyId };
    if (!(await takePlace(call.deps, 'apikey', place, () => call.behind(['workspace'])))) {
      throw new Rejection('too_many_keys', `A workspace may have ${maxKeys} API keys that work: revoke one.`);
    }
    const { id, secret, prefix } = await create(operatorOf(call), wanted, keyId).catch(async (error: unknown) => {
      // A key that was refused is never made; of any other error nobody knows, and its place lapses.
      if (error instanceof Rejection) await freePlace(call.deps.pool, keyId);
      // The same words for an unknown client and for one of another workspace.
      if (!(error instanceof Rejection) || error.code !== 'not_found') throw error;
      throw invalid('/clientIds', 'not_allowed', `must be clients of the ${mode} workspace`);
    });
    await untilAccepted(call);
    const ends = { createdAt: now, expiresAt, previousUntil: null, lastUsedAt: null, revokedAt: null };
    return { data: { id, object: 'api_key', name, mode, prefix, memberId, scopes, clientIds, ...ends, secret } };
  },
});

const monthMs = 30 * 86_400_000;

export const listApiKeys = operation({
  id: 'listApiKeys',
  method: 'GET',
  path: '/api-keys',
  tag: consoleTag,
  summary: 'List API keys, newest first',
  description: 'The keys of the workspace, live and test, with those that ended in the last 30 days; at most 500.',
  scope: 'agency.read',
  limited: 'refused',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  answer: ApiKeyShown,
  list: true,
  codes: [],
  example: { data: exampleApiKey },
  handle: async (call) => {
    await call.behind(['workspace']);
    const { deps, principal, now } = call;
    const endedAfter = new Date(Date.parse(now) - monthMs).toISOString();
    const keys = await recentApiKeys(deps.pool, principal.liveWorkspaceId, endedAfter);
    const uses = await lastUsesOf(
      deps.pool,
      keys.map(({ keyId }) => keyId),
    );
    return wholeList(keys.map((key) => showKey(key, uses.get(key.keyId) ?? null)));
  },
});

export const revokeApiKey = operation({
  id: 'revokeApiKey',
  method: 'DELETE',
  path: '/api-keys/{id}',
  tag: consoleTag,
  summary: 'Revoke an API key',
  description: 'The key stops working within a second. A repeat changes nothing.',
  scope: 'agency.read',
  limited: 'refused',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: ApiKeyShown,
  codes: [],
  example: { data: { ...exampleApiKey, revokedAt: '2026-02-01T08:00:00.000Z' } },
  handle: async (call) => {
    const { principal, params, now } = call;
    const { key, lastUsedAt } = await ownKey(call, params.id);
    await revoke(operatorOf(call), principal.liveWorkspaceId, params.id);
    return { data: showKey({ ...key, revokedAt: key.revokedAt ?? now }, lastUsedAt) };
  },
});
