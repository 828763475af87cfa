import { account } from '#domain/account.ts';
import { workspace } from '#domain/workspace.ts';
import { accountsByIds, connectedAccountIds } from '#projections/accounts.ts';
import { uuidv7 } from '#runtime/domain-store.ts';
import { execute } from '#runtime/execute.ts';
import { viaRequest } from '#runtime/idempotency.ts';
import { AnalyticsRefresh, AnalyticsRefreshing, mostRefreshed } from '#schemas/http/analytics-refresh.ts';
import { type Call, operation } from '../operation.ts';
import { invalid, Refusal } from '../refusal.ts';

interface Decided {
  readonly refreshId: string;
  readonly accountIds: readonly string[];
}

/**
 * Accepted with its accounts and its id. If we die before the workspace's append the repeat makes it; after it the
 * decider knows the id, also when the refresh is complete by then.
 */
export const refreshAnalytics = operation({
  id: 'refreshAnalytics',
  method: 'POST',
  path: '/analytics/refresh',
  tag: 'analytics',
  summary: 'Fetch fresh figures',
  description:
    'For the console. Figures of the accounts and of their posts of the last 90 days are asked for now; what was asked a moment ago is not asked again. The webhook `analytics.refreshed` tells when all were tried.',
  scope: 'analytics.read',
  idempotent: 'accepted',
  cost: 10,
  bodyOptional: true,
  body: AnalyticsRefresh,
  answer: AnalyticsRefreshing,
  codes: ['first_party_only', 'too_many_refreshes'],
  example: { body: {}, data: { requested: 8, refreshId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e000e' } },
  handle: async (call) => {
    const { deps, workspaceId, positions, principal } = call;
    if (principal.kind !== 'session') {
      throw new Refusal('first_party_only', 'Figures are fetched on demand from the console only.');
    }
    const { result, replayed } = await viaRequest<Decided, { readonly requested: number; readonly refreshId: string }>({
      store: deps.store,
      operation: 'refreshAnalytics',
      key: call.key,
      fingerprint: call.fingerprint,
      context: call.context,
      accept: async () => ({ refreshId: uuidv7(), accountIds: await accountsOf(call, call.body.accountIds) }),
      effects: async ({ refreshId, accountIds }, context) => {
        const command = { type: 'RequestRefresh', refreshId, accountIds } as const;
        await execute(deps.store, workspace, workspaceId, command, context, { positions });
        return { requested: accountIds.length, refreshId };
      },
    });
    return { data: result, replayed };
  },
});

/** Each once. Named ones that the read model does not know yet are looked up in their streams. */
const accountsOf = async (call: Call, sent: readonly string[] | undefined): Promise<readonly string[]> => {
  const { deps, workspaceId } = call;
  await call.behind(['workspace']);
  if (sent === undefined) {
    const ids = await connectedAccountIds(deps.knex, workspaceId, mostRefreshed + 1);
    if (ids.length > mostRefreshed) throw invalid('/accountIds', `is needed: more than ${mostRefreshed} are connected`);
    return ids;
  }
  const ids = [...new Set(sent)];
  const known = new Set((await accountsByIds(deps.knex, workspaceId, ids)).map(({ id }) => id));
  const unknown: string[] = [];
  for (const id of ids) {
    if (known.has(id)) continue;
    const { events } = await deps.store.load(account, id);
    if (events[0]?.metadata.workspaceId !== workspaceId) unknown.push(id);
    // Each takes a read of its own: of a list that is wrong throughout the first ones say it.
    if (unknown.length >= 20) break;
  }
  if (unknown.length === 0) return ids;
  throw new Refusal('validation_failed', 'The input is not valid.', {
    errors: unknown.map((id) => ({ path: `/accountIds/${sent.indexOf(id)}`, message: 'is not known' })),
  });
};
