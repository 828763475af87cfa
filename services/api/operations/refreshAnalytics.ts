import { account } from '#domain/account.ts';
import { refresh } from '#domain/refresh.ts';
import { accountsByIds, connectedAccountIds } from '#projections/accounts.ts';
import { asFacts } from '#runtime/eventing/domain-store.ts';
import { AnalyticsRefresh, AnalyticsRefreshing, maxRefreshed } from '#schemas/http/analytics-refresh.ts';
import type { RefreshEvent } from '#schemas/refresh.ts';
import { type Call, operation } from '../operation.ts';
import { invalid, Refusal } from '../refusal.ts';

/**
 * A refresh is a stream of its own that begins with the request, so that a repeat of the call under its key finds it.
 */
export const refreshAnalytics = operation({
  id: 'refreshAnalytics',
  method: 'POST',
  path: '/analytics/refresh',
  tag: 'analytics',
  summary: 'Fetch fresh figures',
  description:
    'For the console. The service asks the networks for the figures of the accounts and of their posts of the last 90 days, except for those it asked for a moment ago. The webhook `analytics.refreshed` tells when it has tried all of them.',
  scope: 'analytics.read',
  firstParty: true,
  idempotent: 'accepted',
  cost: 10,
  bodyOptional: true,
  // The schema refuses a list that is too long and names the member. This limit is higher, so that it does not refuse
  // the body first.
  valueLimit: 2 * maxRefreshed,
  body: AnalyticsRefresh,
  answer: AnalyticsRefreshing,
  codes: [],
  example: { body: {}, data: { requested: 8, refreshId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e000e' } },
  handle: async (call) => {
    const { id, events, replayed } = await call.stream(refresh).create({
      command: async () => ({ type: 'Request', accountIds: await accountsOf(call, call.body.accountIds) }),
    });
    const [requested] = asFacts<RefreshEvent>(events);
    return { data: { requested: requested?.event.data.accountIds.length ?? 0, refreshId: id }, replayed };
  },
});

/** The accounts of the refresh, each once. A named account that the read model lacks is looked up in its stream. */
const accountsOf = async (call: Call, sent: readonly string[] | undefined): Promise<readonly string[]> => {
  const { deps, workspaceId } = call;
  await call.behind(['workspace']);
  if (sent === undefined) {
    const ids = await connectedAccountIds(deps.knex, workspaceId, maxRefreshed + 1);
    if (ids.length > maxRefreshed) throw invalid('/accountIds', `is needed: more than ${maxRefreshed} are connected`);
    return ids;
  }
  const ids = [...new Set(sent)];
  const known = new Set((await accountsByIds(deps.knex, workspaceId, ids)).map(({ id }) => id));
  const unknown: string[] = [];
  for (const id of ids) {
    if (known.has(id)) continue;
    const { events } = await deps.store.load(account, id);
    if (events[0]?.metadata.workspaceId !== workspaceId) unknown.push(id);
    // Each unknown id costs a read of its own, so the answer names only the first of them.
    if (unknown.length >= 20) break;
  }
  if (unknown.length === 0) return ids;
  throw new Refusal('validation_failed', 'The input is not valid.', {
    errors: unknown.map((id) => ({ path: `/accountIds/${sent.indexOf(id)}`, message: 'is not known' })),
  });
};
