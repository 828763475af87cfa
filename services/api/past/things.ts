import { type AccountRow, accounts, getAccount, renderAccount } from '#projections/models/accounts.ts';
import { campaigns, renderCampaign } from '#projections/models/campaigns.ts';
import { type ClientRow, clients, renderClient } from '#projections/models/clients.ts';
import { posts } from '#projections/models/posts.ts';
import { view } from '#projections/shapes.ts';
import { listPage } from '../call/cursor.ts';
import type { Call } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { behind, idsThen, keyOf, pageThen, wasBorn } from './lists.ts';
import { inPast, type Past, pastClientOf, requirePastFilters } from './past.ts';

/** Clients, accounts and campaigns as they were, with what is counted of other streams. */

type Asked = Call<{ readonly id: string }, unknown>;
type Paging = Parameters<typeof pageThen>[3];

const accountKind = (clientId: string) => ({ model: accounts, births: ['AccountConnected'], clientId });

/**
 * What an erasure took of an account is gone from its past too. The picture is not sealed with the client's key, so that
 * the row of now decides; an owner who had the profile forgotten finds it nowhere either.
 */
export const withoutErased = async ({ deps, workspaceId }: Past, row: AccountRow): Promise<AccountRow> => {
  const now = await getAccount(deps.knex, workspaceId, row.id);
  const isTaken = now !== null && now.username === null && now.display_name === null;
  return isTaken ? { ...row, username: null, display_name: null, avatar_url: null } : row;
};

const clientThen = async (past: Past, row: ClientRow): Promise<ClientRow> => {
  const all = await past.rows(accounts, await idsThen(past, accountKind(row.id)));
  return { ...row, account_count: all.filter(({ status }) => status !== 'disconnected').length };
};

export const answerClientThen = (call: Asked, asOf: string) =>
  inPast(call, asOf, async (past) => {
    const row = await past.row(clients, call.params.id);
    if (row === null) throw notFound('client');
    return { data: renderClient(await clientThen(past, row)) };
  });

interface ClientListing {
  readonly limit: number;
  readonly cursor?: string;
  readonly type?: string;
  readonly archived: boolean;
}

export const listClientsThen = (call: Call<unknown, ClientListing>, asOf: string) => {
  const { type, archived } = call.query;
  const { clientIds } = call.principal;
  requirePastFilters(call.query, 'type', 'archived');
  return inPast(call, asOf, (past) =>
    listPage('listClients', call, {
      rows: (page: Paging, knex) =>
        pageThen(knex, past, { model: clients, births: ['ClientCreated'], clientId: null }, page, async (row) => {
          const isMeant = type === undefined || row.type === type;
          if (!isMeant || (row.archived_at !== null) !== archived) return null;
          return clientIds?.includes(row.id) === false ? null : renderClient(await clientThen(past, row));
        }),
      keyOf,
      show: ({ shown }) => shown,
    }),
  );
};

export const answerAccountThen = (call: Asked, asOf: string) =>
  inPast(call, asOf, async (past) => {
    const row = await past.row(accounts, call.params.id);
    if (row === null) throw notFound('account');
    return { data: renderAccount(await withoutErased(past, row)) };
  });

interface Listing {
  readonly limit: number;
  readonly cursor?: string;
  readonly clientId?: string;
}

export const listAccountsThen = (
  call: Call<unknown, Listing & { readonly platform?: readonly string[] }>,
  asOf: string,
) => {
  const { platform } = call.query;
  requirePastFilters(call.query, 'clientId', 'platform');
  const kind = accountKind(pastClientOf(call.query));
  return inPast(call, asOf, (past) =>
    listPage('listAccounts', call, {
      rows: (page: Paging, knex) =>
        pageThen(knex, past, kind, page, async (row) =>
          platform?.includes(row.platform) === false ? null : renderAccount(await withoutErased(past, row)),
        ),
      keyOf,
      show: ({ shown }) => shown,
    }),
  );
};

/** Events after which a post may be in another campaign, or none. */
const moves = [
  ...['PostDrafted', 'DraftReplaced', 'PostScheduled', 'PostRevised', 'PostCampaignChanged', 'PostDiscarded'],
] as const;
/** Posts that are folded to count those of a campaign. */
const maxFolded = 2_000;

/** Posts that moved since are folded; the others are where the read model has them. */
const postCount = async (past: Past, campaignId: string): Promise<number> => {
  const { workspaceId, moment, deps } = past;
  const since = moment.sequence - behind;
  const { rows: moved } = await deps.knex.raw<{ rows: readonly { id: string }[] }>(
    `select distinct substr(f.stream, 6) as id from ops.feed_events f
     where f.workspace_id = ? and f.type = any(?::text[]) and f.sequence > ?
       and (select b.sequence from ops.feed_events b where b.stream = f.stream order by b.revision limit 1) <= ? limit ?`,
    [workspaceId, [...moves], since, moment.sequence, maxFolded + 1],
  );
  if (moved.length > maxFolded) past.tooMuch();
  const ids = moved.map(({ id }) => id);
  const { rows } = await deps.knex.raw<{ rows: readonly { n: number }[] }>(
    `select count(*)::int as n from ${view('posts')} p
     where p.workspace_id = ? and p.campaign_id = ? and p.status <> 'discarded' and p.id <> all(?::uuid[])
       and ${wasBorn('post', 'p.id')}`,
    [workspaceId, campaignId, ids, workspaceId, moment.sequence],
  );
  const folded = await past.rows(posts, ids);
  return (
    (rows[0]?.n ?? 0) + folded.filter((row) => row.campaign_id === campaignId && row.status !== 'discarded').length
  );
};

export const answerCampaignThen = (call: Asked, asOf: string) =>
  inPast(call, asOf, async (past) => {
    const row = await past.row(campaigns, call.params.id);
    if (row === null || row.deleted_at !== null) throw notFound('campaign');
    return { data: renderCampaign({ ...row, post_count: await postCount(past, row.id) }) };
  });

export const listCampaignsThen = (call: Call<unknown, Listing>, asOf: string) => {
  requirePastFilters(call.query, 'clientId');
  const kind = { model: campaigns, births: ['CampaignCreated'], clientId: pastClientOf(call.query) };
  return inPast(call, asOf, (past) =>
    listPage('listCampaigns', call, {
      rows: (page: Paging, knex) =>
        pageThen(knex, past, kind, page, async (row) =>
          row.deleted_at !== null ? null : renderCampaign({ ...row, post_count: await postCount(past, row.id) }),
        ),
      keyOf,
      show: ({ shown }) => shown,
    }),
  );
};
