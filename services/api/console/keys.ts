import { apikey } from '#domain/apikey.ts';
import { birthOf } from '#domain/decider.ts';
import type { ListedKey } from '#projections/models/apikeys.ts';
import { asFacts } from '#runtime/eventing/domain-store.ts';
import type { ApiKeyEvent } from '#schemas/apikey.ts';
import { requireProven } from '#services/auth/people/proof.ts';
import type { Call } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { lastUsesOf } from '../callers/bearer-tokens.ts';
import { personOfCall } from './team.ts';

/** API keys as the console shows them. Keys stay with the live workspace, whichever mode they act in. */

/** A key keeps its access. @throws Rejection where a mail could prove the address of the member, and has not */
export const requireProvenMember = async (call: Pick<Call, 'deps' | 'principal'>): Promise<void> => {
  const personId = await personOfCall(call);
  if (personId !== null) await requireProven(call.deps, personId);
};

/** Milliseconds. */
const acceptedMs = 2_000;

/** Waits until calls with a key that was just stored are accepted; answers anyway where the read model is far behind. */
export const untilAccepted = async ({ deps, positions }: Pick<Call, 'deps' | 'positions'>): Promise<void> => {
  // The credential is stored: a database that does not answer now costs the caller no secret.
  await deps.caughtUp(positions, acceptedMs).catch(() => false);
};

/**
 * The key as its stream has it: a key that leaked can be ended before the read models show it.
 * @throws Refusal 404 for an unknown key and for one of another workspace
 */
export const ownKey = async (
  { deps, principal }: Pick<Call, 'deps' | 'principal'>,
  id: string,
): Promise<{ readonly key: ListedKey; readonly lastUsedAt: string | null }> => {
  const { events } = await deps.store.load(apikey, id);
  const isOwn = birthOf(apikey, events)?.metadata.workspaceId === principal.liveWorkspaceId;
  let key: ListedKey | null = null;
  for (const { event, fact } of asFacts<ApiKeyEvent>(events)) key = listedAfter(key, id, event, fact.occurredAt);
  if (key === null || !isOwn) throw notFound('API key');
  return { key, lastUsedAt: (await lastUsesOf(deps.pool, [id])).get(id) ?? null };
};

const listedAfter = (
  key: ListedKey | null,
  keyId: string,
  { type, data }: ApiKeyEvent,
  occurredAt: string,
): ListedKey | null => {
  if (type === 'ApiKeyCreated') {
    const { name, mode, prefix, memberId, scopes: scopeNames, clientIds, expiresAt } = data;
    const made = { keyId, name, mode, prefix, memberId, scopeNames, clientIds };
    return { ...made, createdAt: occurredAt, expiresAt, previousUntil: null, revokedAt: null };
  }
  if (key === null) return null;
  if (type === 'ApiKeyRevoked') return { ...key, revokedAt: occurredAt };
  return { ...key, prefix: data.prefix, previousUntil: data.previousUntil };
};

export const showKey = (
  {
    keyId,
    name,
    mode,
    prefix,
    memberId,
    scopeNames,
    clientIds,
    createdAt,
    expiresAt,
    previousUntil,
    revokedAt,
  }: ListedKey,
  lastUsedAt: string | null,
) => ({
  id: keyId,
  object: 'api_key' as const,
  ...{ name, mode, prefix, memberId, scopes: scopeNames, clientIds },
  ...{ createdAt, expiresAt, previousUntil, lastUsedAt, revokedAt },
});

export const exampleApiKey = {
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0101',
  object: 'api_key',
  name: 'Newsroom importer',
  mode: 'test',
  prefix: 'sk_test_Ab3d',
  memberId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0102',
  scopes: ['posts.read', 'posts.compose'],
  clientIds: null,
  createdAt: '2026-01-31T08:00:00.000Z',
  expiresAt: '2027-01-31T08:00:00.000Z',
  previousUntil: null,
  lastUsedAt: null,
  revokedAt: null,
};
