import { type CadenceAccount, cadenceOf, nextFreeAt, reachOf, usedIn } from '#domain/cadence.ts';
import type { NewestFirst } from '#projections/engine/rows.ts';
import {
  type AccountRow,
  getAccount as queryAccount,
  listAccounts as queryAccounts,
} from '#projections/models/accounts.ts';
import { type PostingRules, readPostingRules, slotsOf } from '#projections/queries/posting-rules.ts';
import { AccountQuery } from '#schemas/http/account.ts';
import { AccountCadence } from '#schemas/http/cadence.ts';
import { IdParams } from '#schemas/http/common.ts';
import { withinLimit } from '../call/access.ts';
import { listPage, newestFirst } from '../call/cursor.ts';
import { exampleAccount } from '../call/examples.ts';
import { type Call, operation } from '../call/operation.ts';
import { readRow } from '../call/rows.ts';
import { accountsTag } from './accounts.ts';

/** The limits of an account, as the contract shows them. */

const exampleCadence = {
  accountId: exampleAccount.id,
  platform: exampleAccount.platform,
  windows: [
    { name: '24 hours', limit: 20, used: 2, remaining: 18, resetsAt: '2026-02-01T06:30:00.000Z', source: 'workspace' },
  ],
  minIntervalMinutes: 30,
  nextFreeAt: '2026-01-31T08:12:00.000Z',
};

const cadenceAccountOf = ({
  id,
  platform,
  network,
  observed_limits: observed,
}: Pick<AccountRow, 'id' | 'platform' | 'network' | 'observed_limits'>): CadenceAccount & { readonly id: string } => ({
  ...{ id, platform, network },
  observed: observed ?? [],
});

const isoOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

/** Days ahead in which the next free time is looked for. */
const aheadMs = 8 * 86_400_000;

/** How often accounts may publish, as the api shows it. */
export const showCadence = async (
  { deps, now }: Pick<Call, 'deps' | 'now'>,
  account: ReturnType<typeof cadenceAccountOf>,
  rules: PostingRules,
) => {
  const cadence = cadenceOf(account, rules.cadence ?? []);
  const at = Date.parse(now);
  const reach = reachOf(cadence);
  const slots =
    reach === 0 ? [] : await slotsOf(deps.pool, { accountId: account.id, from: at - reach, to: at + aheadMs });
  return {
    accountId: account.id,
    platform: account.platform,
    windows: cadence.windows.map((window) => {
      const { used, remaining, resetsAt } = usedIn(window, slots, at);
      const { name, limit, source } = window;
      return { name, limit, used, remaining, resetsAt: isoOf(resetsAt), source };
    }),
    minIntervalMinutes: cadence.minIntervalMinutes,
    nextFreeAt: isoOf(nextFreeAt(cadence, slots, at)),
  };
};

export const getAccountCadence = operation({
  id: 'getAccountCadence',
  method: 'GET',
  path: '/accounts/{id}/cadence',
  tag: accountsTag,
  summary: 'Get the posting limits of an account',
  description:
    'A post for a time at which an account would publish too often is refused with `cadence_exceeded`. The limits are checked once more when a target is due: over them it waits, first come, first served, and holds the next free time: its `scheduledAt` stays, and `retryAt` shows when it goes out, a little later if the posts before it take their time. A target that no window is large enough for fails with `cadence_never_fits` and can be retried; where an account may publish nothing at all, it waits for a day first.',
  scope: 'accounts.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: AccountCadence,
  codes: [],
  example: { data: exampleCadence },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const row = await readRow(call, 'account', ['workspace'], (id) => queryAccount(deps.knex, workspaceId, id));
    await call.behind(['posts']);
    const rules = await readPostingRules(deps.pool, workspaceId);
    return { data: await showCadence(call, cadenceAccountOf(row), rules) };
  },
});

export const listAccountCadences = operation({
  id: 'listAccountCadences',
  method: 'GET',
  path: '/accounts/cadence',
  tag: accountsTag,
  summary: 'List the posting limits of all accounts, the newest account first',
  scope: 'accounts.read',
  limited: 'filtered',
  idempotent: 'none',
  cost: 1,
  query: AccountQuery,
  answer: AccountCadence,
  list: true,
  codes: [],
  example: { data: exampleCadence },
  handle: async (call) => {
    await call.behind(['workspace', 'posts']);
    const { deps, workspaceId } = call;
    const { clientId, platform } = call.query;
    const filters = {
      ...withinLimit(call.principal),
      ...(clientId === undefined ? {} : { clientId }),
      ...(platform === undefined ? {} : { platforms: platform }),
    };
    const page = await listPage('listAccountCadences', call, {
      rows: (asked: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        queryAccounts(knex, workspaceId, filters, asked),
      keyOf: newestFirst,
      show: (row: AccountRow) => cadenceAccountOf(row),
    });
    const rules = await readPostingRules(deps.pool, workspaceId);
    const data = await Promise.all(page.data.map((account) => showCadence(call, account, rules)));
    return { ...page, data };
  },
});
