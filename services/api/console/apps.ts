import { birthOf } from '#domain/decider.ts';
import { grant } from '#domain/grant.ts';
import type { ListedGrant } from '#projections/models/grants.ts';
import { asFacts } from '#runtime/eventing/domain-store.ts';
import type { GrantEvent } from '#schemas/grant.ts';
import type { Call } from '../operation.ts';

/** Connected apps as the console shows them. */

export const showApp = (
  { grantId, clientId, clientName, memberId, mode, scopes, resource, givenAt, expiresAt, revokedAt }: ListedGrant,
  lastUsedAt: string | null,
) => ({
  id: grantId,
  object: 'connected_app' as const,
  ...{ clientId, clientName, memberId, mode, scopes, resource, givenAt, expiresAt, lastUsedAt, revokedAt },
});

/**
 * The grant of the live workspace as its stream has it, so that it can be ended before the read models show it. Null
 * where the workspace has none of this id.
 */
export const ownGrant = async (
  { deps, principal }: Pick<Call, 'deps' | 'principal'>,
  grantId: string,
): Promise<ListedGrant | null> => {
  const { liveWorkspaceId: workspaceId } = principal;
  const { events } = await deps.store.load(grant, grantId);
  if (birthOf(grant, events)?.metadata.workspaceId !== workspaceId) return null;
  const facts = asFacts<GrantEvent>(events);
  const given = facts.find(({ event }) => event.type === 'GrantGiven');
  const ended = facts.find(({ event }) => event.type === 'GrantRevoked');
  if (given?.event.type !== 'GrantGiven') return null;
  const { clientId, clientName, personId, memberId, mode, scopes, resource, expiresAt } = given.event.data;
  return {
    ...{ grantId, workspaceId, clientId, clientName, personId, memberId, mode, scopes, resource, expiresAt },
    givenAt: given.fact.occurredAt,
    revokedAt: ended?.fact.occurredAt ?? null,
    revokedBy: ended?.event.type === 'GrantRevoked' ? ended.event.data.by : null,
  };
};

export const exampleApp = {
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0105',
  object: 'connected_app',
  clientId: '2YotnFZFEjr1zCsicMWpAA',
  clientName: 'An agent',
  memberId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0102',
  mode: 'test',
  scopes: ['posts.read', 'posts.compose'],
  resource: 'https://api.example/mcp',
  givenAt: '2026-01-31T08:00:00.000Z',
  expiresAt: '2027-01-31T08:00:00.000Z',
  lastUsedAt: null,
  revokedAt: null,
};
