import { apiKeyById, type ListedKey } from '#projections/apikeys.ts';
import { requireProven } from '#services/auth/people/proof.ts';
import type { Operator } from '#services/workflows/provision.ts';
import { lastUsesOf } from '../last-uses.ts';
import type { Call } from '../operation.ts';
import { notFound } from '../refusal.ts';
import { personOfCall } from './sessions.ts';

/** API keys as the console shows them. Keys stay with the live workspace, whichever mode they act in. */

/** The member as the one who provisions. */
export const operatorOf = ({
  deps,
  principal,
  positions,
}: Pick<Call, 'deps' | 'principal' | 'positions'>): Operator => ({
  store: deps.store,
  actor: principal.actor,
  clock: deps.clock,
  positions,
});

/** Whoever has a key stays in. @throws Rejection where a mail could prove the address of the member, and has not */
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

/** @throws Refusal 404 for an unknown key and for one of another workspace */
export const ownKey = async (
  call: Pick<Call, 'deps' | 'principal' | 'behind'>,
  id: string,
): Promise<{ readonly key: ListedKey; readonly lastUsedAt: string | null }> => {
  await call.behind(['workspace']);
  const { pool } = call.deps;
  const key = await apiKeyById(pool, call.principal.liveWorkspaceId, id);
  if (key === null) throw notFound('API key');
  return { key, lastUsedAt: (await lastUsesOf(pool, [id])).get(id) ?? null };
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
