import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Platform } from '#schemas/common.ts';
import type { PostStatus } from '#schemas/post.ts';
import { targetStatuses } from '#schemas/target.ts';
import { type NewestFirst, newestFirst, type Page, type PageOf, substring } from '../engine/rows.ts';
import { lastDecisionSql } from '../models/approvals.ts';
import { listedAt, type PostRow, posts, searchedText } from '../models/posts.ts';
import { goesToClientsAlone, shownCampaignOf, twice } from '../models/sql.ts';
import { view } from '../shapes.ts';
import { isMergeable, isUnled, type Lead, merged, uuids } from './merged-scans.ts';

/** The list of posts. */

export interface PostFilters {
  readonly statuses?: readonly PostStatus[];
  readonly clientId?: string;
  /** Only posts of these clients that go to accounts of these clients alone. */
  readonly clientIds?: readonly string[];
  readonly platforms?: readonly Platform[];
  readonly campaignId?: string;
  readonly externalRef?: string;
  /** Compared with the earliest due instant, or a draft's creation: from inclusive, to exclusive. */
  readonly from?: string;
  readonly to?: string;
  /** Part of the first `searchedCharacters` of the base content, case-insensitive. */
  readonly search?: string;
}

/** All columns except those that no row of a list shows. */
const columnsOfPost = [
  ...['id', 'workspace_id', 'revision', 'created_at', 'updated_at'],
  ...Object.keys(posts.columns).filter((name) => name !== 'earlier' && name !== 'campaign_id'),
];
const searchedOrBody = `case when searched_revision = revision then searched else ${searchedText('body')} end`;

/** The leading columns of the index that yields the rows in order; none where Postgres chooses well by itself. */
const leadsOf = (workspaceId: string, filters: PostFilters): readonly Lead[] => {
  const { clientId, clientIds, statuses } = filters;
  if (filters.externalRef !== undefined) return [];
  if (filters.campaignId !== undefined) {
    return [uuids('workspace_id', [workspaceId]), uuids('campaign_id', [filters.campaignId])];
  }
  const status = statuses === undefined ? [] : [{ column: 'shown_status', type: 'text', values: statuses } as const];
  const isHidden = clientId !== undefined && clientIds?.includes(clientId) === false;
  const clients = isHidden ? [] : clientId === undefined ? clientIds : [clientId];
  const ofClients = clients === undefined ? [] : [uuids('client_id', clients), ...status];
  // The posts of one client are in order in their index: nothing is merged.
  if (clients?.length === 1 && status.length === 0) return [];
  if (isMergeable(ofClients)) return ofClients;
  return status.length === 0 ? [] : [uuids('workspace_id', [workspaceId]), ...status];
};

/** Posts on so few networks are looked at one by one, wherever they stand in the list. */
const fewTargets = 500;

/** The posts with a target on one of the networks; null: too many to name. */
const postsOn = async (
  knex: Knex,
  workspaceId: string,
  platforms: readonly Platform[],
): Promise<readonly string[] | null> => {
  const targets = await knex(`${view('post_targets')} as post_targets`)
    .select('post_id')
    .where({ workspace_id: workspaceId })
    .whereRaw('status = any(?::text[]) and platform = any(?::text[])', [[...targetStatuses], [...platforms]])
    .limit(fewTargets + 1);
  return targets.length > fewTargets ? null : targets.map((row: { readonly post_id: string }) => row.post_id);
};

/** Newest first. */
export const listPosts = async (
  knex: Knex,
  workspaceId: string,
  filters: PostFilters,
  page: PageOf<NewestFirst>,
): Promise<Page<PostRow>> => {
  const { statuses, platforms, clientId, clientIds, campaignId, after } = { ...filters, ...page };
  const few = platforms === undefined ? null : await postsOn(knex, workspaceId, platforms);
  const leads = few === null ? leadsOf(workspaceId, filters) : [];
  const query = knex(`${view('posts')} as posts`).whereRaw(`status <> 'discarded'`);
  if (few !== null) query.whereRaw('id = any(?::uuid[])', [[...few]]);
  if (leads.length === 0) query.where({ workspace_id: workspaceId });
  if (isUnled(leads, 'client_id')) {
    if (clientId !== undefined) query.where({ client_id: clientId });
    if (clientIds !== undefined) query.whereRaw('client_id = any(?::uuid[])', [[...clientIds]]);
  }
  if (statuses !== undefined && isUnled(leads, 'shown_status'))
    query.whereRaw('shown_status = any(?::text[])', [[...statuses]]);
  if (clientId !== undefined) {
    // A client has posts of one workspace only: where its first one does not match, none does, and none is looked at.
    query.whereRaw(`(select c.workspace_id = ? from ${view('posts')} c where c.client_id = ? limit 1)`, [
      workspaceId,
      clientId,
    ]);
  }
  if (clientIds !== undefined) query.whereRaw(goesToClientsAlone('posts'), twice(clientIds));
  if (platforms !== undefined) query.whereRaw('platforms && ?::text[]', [[...platforms]]);
  if (campaignId !== undefined) {
    // One of them, looked at once.
    query.whereRaw(`(select c.deleted_at from ${view('campaigns')} c where c.id = ?) is null`, [campaignId]);
    if (isUnled(leads, 'campaign_id')) query.where({ campaign_id: campaignId });
  }
  if (filters.externalRef !== undefined) query.where({ external_ref: filters.externalRef });
  if (filters.from !== undefined) query.whereRaw(`${listedAt} >= ?::timestamptz`, [filters.from]);
  if (filters.to !== undefined) query.whereRaw(`${listedAt} < ?::timestamptz`, [filters.to]);
  if (filters.search !== undefined)
    query.whereRaw(`${searchedOrBody} like lower(?::text)`, [substring(filters.search)]);
  if (leads.length > 0 && after !== null)
    query.whereRaw('(created_at, id) < (?::timestamptz, ?::uuid)', [after.createdAt, after.id]);
  const shown = (rows: Knex.QueryBuilder): Knex.QueryBuilder =>
    rows
      .select(columnsOfPost)
      .select(knex.raw(`${shownCampaignOf('posts')} as campaign_id, ${lastDecisionSql('posts')} as last_decision`));
  if (leads.length === 0) return newestFirst(shown(query), posts, page);
  const ids = merged(knex, query, leads, { by: 'created_at', order: 'desc', limit: page.limit + 1 });
  const found = knex(`${view('posts')} as posts`)
    .where({ workspace_id: workspaceId })
    .where('id', '=', knex.raw('any(?)', [ids]));
  return newestFirst(shown(found), posts, { after: null, limit: page.limit });
};

/** A post that is behind its plan, with the instant of its last change as Postgres writes it. */
export interface PostBehind {
  readonly id: string;
  readonly updatedAt: string;
}

export const beforeAllPosts: PostBehind = {
  id: '00000000-0000-0000-0000-000000000000',
  updatedAt: '-infinity',
};

/** Oldest change first. `$1`, `$2`: change and id of the last one seen. */
export const behindSql = `
select p.id::text as id, p.updated_at::text as "updatedAt" from ${view('posts')} p
where p.fan_out_behind and (p.updated_at, p.id) > ($1::timestamptz, $2::uuid)
order by p.updated_at, p.id limit 100`;

/**
 * Posts whose targets lag behind their plan: a worker crashed between the plan and its targets, or is under way. A
 * partial index holds only these posts, and they are few.
 */
export const postsBehind = async (pool: Pool, after: PostBehind): Promise<readonly PostBehind[]> =>
  (await pool.query<PostBehind>(behindSql, [after.updatedAt, after.id])).rows;

/** Posts that are behind, counted up to `limit`, and how long ago the first of them was changed, seconds. */
export const countPostsBehind = async (
  pool: Pool,
  limit: number,
): Promise<{ readonly posts: number; readonly oldestSeconds: number }> => {
  const { rows } = await pool.query<{ posts: number; age: number | null }>(
    `select count(*)::int as posts, extract(epoch from now() - min(updated_at))::float8 as age from (
       select updated_at from ${view('posts')} as posts where fan_out_behind order by updated_at limit ${limit}) as behind`,
  );
  return { posts: rows[0]?.posts ?? 0, oldestSeconds: rows[0]?.age ?? 0 };
};

/** The post whose plan names a target that is not written yet; null where there is none. */
export const postPlanning = async (pool: Pool, workspaceId: string, targetId: string): Promise<string | null> => {
  const { rows } = await pool.query<{ id: string }>(
    `select id from ${view('posts')} as posts where fan_out_behind and workspace_id = $1 and standings ? $2 limit 1`,
    [workspaceId, targetId],
  );
  return rows[0]?.id ?? null;
};

/** The post that asks for this approval, whose request may not be written yet; null where there is none. */
export const postAskingFor = async (pool: Pool, workspaceId: string, approvalId: string): Promise<string | null> => {
  const { rows } = await pool.query<{ id: string }>(
    `select id from ${view('posts')} as posts
     where approval ->> 'status' = 'pending' and approval ->> 'id' = $2 and workspace_id = $1 limit 1`,
    [workspaceId, approvalId],
  );
  return rows[0]?.id ?? null;
};
