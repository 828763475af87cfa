import { refresh } from '#domain/refresh.ts';
import { asFacts } from '#runtime/eventing/domain-store.ts';
import { AnalyticsRefresh, AnalyticsRefreshCreate, maxRefreshed } from '#schemas/http/analytics-refresh.ts';
import type { RefreshEvent } from '#schemas/refresh.ts';
import { accountsToRefresh } from '../analytics/refreshed.ts';
import { operation } from '../operation.ts';

/**
 * A refresh is a stream of its own that begins with the request, so that a repeat of the call under its key finds it.
 */
export const refreshAnalytics = operation({
  id: 'refreshAnalytics',
  method: 'POST',
  path: '/analytics/refresh',
  tag: 'analytics',
  summary: 'Fetch fresh figures now',
  description:
    'Asks the networks now, not at the next regular time, for the figures of the accounts and of their posts of the last 90 days, except for those that were fetched a moment ago. The answer comes at once with a `refreshId`; the event `analytics.refreshed` with the same id comes when every account was tried, and says how many failed. Only the console may call it, with the session of a member: API keys and OAuth tokens are refused with `first_party_only`.',
  scope: 'analytics.read',
  firstParty: true,
  idempotent: 'accepted',
  cost: 10,
  bodyOptional: true,
  // The schema refuses a list that is too long and names the member. This limit is higher, so that it does not refuse
  // the body first.
  valueLimit: 2 * maxRefreshed,
  body: AnalyticsRefreshCreate,
  answer: AnalyticsRefresh,
  codes: [],
  example: { body: {}, data: { requested: 8, refreshId: 'a5b57b48-7a31-5acd-bcd7-86ad383d6523' } },
  handle: async (call) => {
    const { id, events, replayed } = await call.stream(refresh).create({
      command: async () => ({ type: 'Request', accountIds: await accountsToRefresh(call, call.body.accountIds) }),
    });
    const [requested] = asFacts<RefreshEvent>(events);
    return { data: { requested: requested?.event.data.accountIds.length ?? 0, refreshId: id }, replayed };
  },
});
