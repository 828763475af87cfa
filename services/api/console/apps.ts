import type { ListedGrant } from '#projections/grants.ts';

/** Connected apps as the console shows them. */

export const showApp = (
  { grantId, clientId, clientName, memberId, mode, scopes, resource, givenAt, expiresAt, revokedAt }: ListedGrant,
  lastUsedAt: string | null,
) => ({
  id: grantId,
  object: 'connected_app' as const,
  ...{ clientId, clientName, memberId, mode, scopes, resource, givenAt, expiresAt, lastUsedAt, revokedAt },
});

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
