import { Type } from 'typebox';
import type { Choice, Unanswered } from '#contracts/ports/platform-account.ts';
import { choicesOf, rulesOf } from '#domain/platforms/index.ts';
import { type AccountRow, getAccount as queryAccount } from '#projections/models/accounts.ts';
import { getClient } from '#projections/models/clients.ts';
import { platforms } from '#schemas/common.ts';
import { AccountOption, AccountOptionQuery } from '#schemas/http/account.ts';
import { IdParams } from '#schemas/http/common.ts';
import { said } from '#schemas/published.ts';
import type { Asking } from '#services/workflows/accounts/asked.ts';
import { memoryPage } from '../call/cursor.ts';
import { exampleAccount } from '../call/examples.ts';
import { type Call, operation } from '../call/operation.ts';
import { Refusal } from '../call/refusal.ts';
import { readRow } from '../call/rows.ts';
import { accountsTag } from './accounts.ts';

/** What a network lets an account choose. */

const askingOf = ({ workspace_id: workspaceId, external_id: externalId, ...account }: AccountRow): Asking => {
  const { id, username, platform, network } = account;
  return { workspaceId, id, externalId, username, platform, network };
};

/** @throws Refusal: a person has to do something before the network can be asked */
const requireAskable = async ({ deps, workspaceId }: Call, account: AccountRow): Promise<void> => {
  const { status, health_reason: reason, client_id: clientId } = account;
  if (status === 'disconnected') throw new Refusal('account_disconnected', 'The account is disconnected.');
  if (status === 'reauth_required') throw refusedBy(account, reason ?? 'it gave no reason');
  const client = await getClient(deps.knex, workspaceId, clientId);
  if (client !== null && client.archived_at !== null) {
    throw new Refusal('client_archived', 'The client of the account is archived: no network is asked about it.');
  }
};

const refusedBy = ({ platform }: Pick<AccountRow, 'platform'>, reason: string): Refusal =>
  new Refusal('account_reauth_required', `${rulesOf(platform).name} refuses the account: ${reason}.`);

/** Seconds after which a network that did not answer may be asked again. */
const silentSeconds = 5;

const unanswered = (account: AccountRow, answer: Unanswered, now: number): Refusal => {
  const { name } = rulesOf(account.platform);
  if (answer.kind === 'reauth_required') return refusedBy(account, answer.reason);
  const isLimited = answer.kind === 'rate_limited';
  const seconds = isLimited ? Math.max(1, Math.ceil((Date.parse(answer.retryAt) - now) / 1_000)) : silentSeconds;
  const detail = isLimited
    ? `${name} takes no further question about this account until ${answer.retryAt}.`
    : `${name} told nothing: ${answer.reason}.`;
  return new Refusal('unavailable', detail, { headers: { 'Retry-After': String(seconds) } });
};

/** @throws Refusal 404 that names the keys which the network has */
const requireKey = ({ platform }: AccountRow, key: string): void => {
  const known = Object.keys(choicesOf(platform));
  if (known.includes(key)) return;
  const { name } = rulesOf(platform);
  const has = known.length === 0 ? 'has no options of an account' : `has the options ${known.join(', ')}`;
  throw new Refusal('not_found', `${name} ${has}.`);
};

/** Of the order of a page: a name may be long, and a cursor may not. */
const maxKey = 40;
const keyOf = ({ label, value }: Choice): string => `${label.toLowerCase().slice(0, maxKey)}\0${value}`;

const keys = platforms.flatMap((platform) => {
  const { name } = rulesOf(platform);
  return Object.entries(choicesOf(platform)).map(([key, about]) => `\`${key}\` (${name}): ${about}`);
});

const OptionParams = Type.Object({
  // No row of the answer has it.
  id: said(IdParams.properties.id, 'Id of the account.', { examples: [exampleAccount.id] }),
  key: Type.String({
    ...{ pattern: '^[A-Za-z]{1,64}$', expects: 'a key, such as boardId' },
    description: `What is asked for. ${keys.join(' ')} Other networks have none.`,
    examples: ['boardId'],
  }),
});

export const listAccountOptions = operation({
  id: 'listAccountOptions',
  method: 'GET',
  path: '/accounts/{id}/options/{key}',
  tag: accountsTag,
  summary: 'List what an account may choose on its network, by name',
  description:
    'The network is asked for the values of an override that differ from account to account, such as the boards of a pinterest account: send the `value` of one as that override of a variant. The answer may be a minute old. A network that does not answer, or takes no further question for now, is `unavailable` with the seconds to wait in `Retry-After`. A network without such a key is `not_found`, and `detail` names those that it has.',
  scope: 'accounts.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  searchCost: 1,
  params: OptionParams,
  query: AccountOptionQuery,
  answer: AccountOption,
  list: true,
  codes: ['account_disconnected', 'account_reauth_required', 'client_archived'],
  example: { data: { value: '549755885175', label: 'Recipes', about: 'PUBLIC' } },
  handle: async (call) => {
    const { deps, workspaceId, params, query } = call;
    const account = await readRow(call, 'account', ['workspace'], (id) => queryAccount(deps.knex, workspaceId, id));
    requireKey(account, params.key);
    await requireAskable(call, account);
    const answer = await deps.asked.choices(askingOf(account), params.key);
    if (answer.kind !== 'choices') throw unanswered(account, answer, deps.clock());
    const wanted = query.search?.toLowerCase() ?? '';
    const found = answer.choices.filter(({ label }) => label.toLowerCase().includes(wanted));
    const { name } = rulesOf(account.platform);
    const message = `${name} has more than the ${answer.choices.length} that are read of it: what is not listed may be there.`;
    const warnings = answer.isCut ? [{ code: 'options_cut' as const, message }] : [];
    // A cursor is valid for one account and key.
    const list = `listAccountOptions/${account.id}/${params.key}`;
    return { ...memoryPage(list, call, found, keyOf), warnings };
  },
});
