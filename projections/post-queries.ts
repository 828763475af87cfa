import type { Knex } from 'knex';
import type { Platform } from '#schemas/common.ts';
import type { PostStatus } from '#schemas/post.ts';
import { targetStatuses } from '#schemas/target.ts';
import { lastDecisionSql } from './approvals.ts';
import { goesToClientsAlone, twice } from './client-posts.ts';
import { isMergeable, isUnled, type Lead, merged, uuids } from './merged-scans.ts';
import { shownCampaignOf } from './post-campaigns.ts';
import { listedAt, type PostRow, posts, searchedText } from './posts.ts';
import { type NewestFirst, newestFirst, type Page, type PageOf, substring } from './rows.ts';

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
  const targets = await knex('read.post_targets')
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
  const query = knex('read.posts').whereRaw(`status <> 'discarded'`);
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
    query.whereRaw('(select c.workspace_id = ? from read.posts c where c.client_id = ? limit 1)', [
      workspaceId,
      clientId,
    ]);
  }
  if (clientIds !== undefined) query.whereRaw(goesToClientsAlone('posts'), twice(clientIds));
  if (platforms !== undefined) query.whereRaw('platforms && ?::text[]', [[...platforms]]);
  if (campaignId !== undefined) {
    // One of them, looked at once.
    query.whereRaw('(select c.deleted_at from read.campaigns c where c.id = ?) is null', [campaignId]);
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
  const found = knex('read.posts')
    .where({ workspace_id: workspaceId })
    .where('id', '=', knex.raw('any(?)', [ids]));
  return newestFirst(shown(found), posts, { after: null, limit: page.limit });
};
