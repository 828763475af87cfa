import { refresh } from '#domain/refresh.ts';
import { accountsByIds, connectedAccountIds } from '#projections/models/accounts.ts';
import { asFacts } from '#runtime/eventing/domain-store.ts';
import { AnalyticsRefresh, AnalyticsRefreshCreate, maxRefreshed } from '#schemas/http/analytics-refresh.ts';
import type { RefreshEvent } from '#schemas/refresh.ts';
import { accountFromStream } from '#services/workflows/posts/accounts.ts';
import { type Call, operation } from '../call/operation.ts';
import { invalid, Refusal } from '../call/refusal.ts';
import { analyticsTag } from './examples.ts';

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'behind'>;

/** Unknown ids that a refusal names: each costs a read of its own. */
const maxNamed = 20;

/** The accounts of a refresh, each once: those that the call names, else all connected ones. @throws Refusal 422 */
const accountsToRefresh = async (call: Asking, sent: readonly string[] | undefined): Promise<readonly string[]> => {
  await call.behind(['workspace']);
  return sent === undefined ? allConnected(call) : named(call, sent);
};

const allConnected = async ({ deps, workspaceId }: Asking): Promise<readonly string[]> => {
  const ids = await connectedAccountIds(deps.knex, workspaceId, maxRefreshed + 1);
  if (ids.length > maxRefreshed)
    throw invalid('/accountIds', 'required', `is required: more than ${maxRefreshed} are connected`);
  return ids;
};

/** An account that the read model lacks is looked up in its stream. */
const named = async (call: Asking, sent: readonly string[]): Promise<readonly string[]> => {
  const { deps, workspaceId } = call;
  const ids = [...new Set(sent)];
  const known = new Set((await accountsByIds(deps.knex, workspaceId, ids)).map(({ id }) => id));
  const unknown: string[] = [];
  for (const id of ids) {
    if (known.has(id) || (await accountFromStream(call, id)) !== null) continue;
    unknown.push(id);
    if (unknown.length >= maxNamed) break;
  }
  if (unknown.length === 0) return ids;
  throw new Refusal('validation_failed', 'The input is not valid.', {
    errors: unknown.map((id) => ({
      path: `/accountIds/${sent.indexOf(id)}`,
      code: 'unknown_id',
      message: 'is not known',
    })),
  });
};

/**
 * A refresh is a stream of its own that begins with the request, so that a repeat of the call under its key finds it.
 */
export const refreshAnalytics = operation({
  id: 'refreshAnalytics',
  method: 'POST',
  path: '/analytics/refresh',
  tag: analyticsTag,
  summary: 'Fetch fresh figures now',
  description:
    'Asks the networks now, not at the next regular time, for the figures of the accounts and of their posts of the last 90 days, except for those that were fetched a moment ago. The answer comes at once with a `refreshId`; the event `analytics.refreshed` with the same id comes when every account was tried, and says how many failed. Only the console may call it, with the session of a member: API keys and OAuth tokens are refused with `first_party_only`.',
  scope: 'analytics.read',
  limited: 'refused',
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
