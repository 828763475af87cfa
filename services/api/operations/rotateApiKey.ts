import { IdParams } from '#schemas/http/common.ts';
import { ApiKeyShown } from '#schemas/http/console.ts';
import { rotateApiKey as rotate } from '#services/workflows/provision.ts';
import { exampleApiKey, operatorOf, ownKey, showKey } from '../console/keys.ts';
import { operation } from '../operation.ts';

export const rotateApiKey = operation({
  id: 'rotateApiKey',
  method: 'POST',
  path: '/api-keys/{id}/rotate',
  tag: 'console',
  summary: 'Rotate an API key',
  description:
    'Makes a new key with the same powers and shows it once. The former one works for another 24 hours, at most until it expires. A repeat of the call rotates again.',
  scope: 'agency.read',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: ApiKeyShown,
  codes: [],
  example: { data: { ...exampleApiKey, secret: 'sk_test_<43 characters>' } },
  handle: async (call) => {
    const { principal, params } = call;
    const { key, lastUsedAt } = await ownKey(call, params.id);
    const { prefix, previousUntil, secret } = await rotate(operatorOf(call), principal.liveWorkspaceId, params.id);
    return { data: { ...showKey(key, lastUsedAt), prefix, previousUntil, secret } };
  },
});
