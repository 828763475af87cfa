import { IdParams } from '#schemas/http/common.ts';
import { ApiKeyShown } from '#schemas/http/console.ts';
import { revokeApiKey as revoke } from '#services/workflows/provision.ts';
import { exampleApiKey, operatorOf, ownKey, showKey } from '../console/keys.ts';
import { operation } from '../operation.ts';

export const revokeApiKey = operation({
  id: 'revokeApiKey',
  method: 'DELETE',
  path: '/api-keys/{id}',
  tag: 'console',
  summary: 'Revoke an API key',
  description: 'The key stops working within a second. A repeat changes nothing.',
  scope: 'agency.read',
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
