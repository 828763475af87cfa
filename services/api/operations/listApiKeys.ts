import { recentApiKeys } from '#projections/models/apikeys.ts';
import { ApiKeyShown } from '#schemas/http/console.ts';
import { exampleApiKey, showKey } from '../console/keys.ts';
import { wholeList } from '../cursor.ts';
import { lastUsesOf } from '../last-uses.ts';
import { operation } from '../operation.ts';

const monthMs = 30 * 86_400_000;

export const listApiKeys = operation({
  id: 'listApiKeys',
  method: 'GET',
  path: '/api-keys',
  tag: 'console',
  summary: 'List API keys, newest first',
  description: 'The keys of the workspace, live and test, with those that ended in the last 30 days; at most 500.',
  scope: 'agency.read',
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
