import type { Knex } from 'knex';
import { type Platform, platforms } from '#schemas/common.ts';
import { type TargetStatus, targetStatuses } from '#schemas/target.ts';
import { asRow, type Page, pageOf } from '../engine/rows.ts';
import { bodyAtSql } from '../models/post-bodies.ts';
import { postTargets, type TargetContent, type TargetRow } from '../models/targets.ts';
import { view } from '../shapes.ts';
import { isMergeable, isUnled, type Lead, merged, uuids } from './merged-scans.ts';

/** Targets as they are read, each with the content of its post. */

/** A target and the content of its post that it shows. */
export interface TargetWithContent {
  readonly target: TargetRow;
  readonly body: TargetContent;
}

const content =
  "b.body -> 'content' as c, b.body -> 'mediaIds' as m, b.body -> 'variants' as v, b.body -> 'thread' as t";
interface RawContent {
  readonly c: TargetContent['content'];
  readonly m: TargetContent['mediaIds'];
  readonly v: TargetContent['variants'];
  readonly t: TargetContent['thread'];
}
const contentOf = ({ c, m, v, t }: RawContent): TargetContent => ({ content: c, mediaIds: m, variants: v, thread: t });

export const getTarget = async (knex: Knex, workspaceId: string, id: string): Promise<TargetWithContent | null> => {
  const found = await knex.raw(
    `select t.*, ${content} from ${view('post_targets')} t join ${view('posts')} p on p.id = t.post_id
     cross join lateral (select ${bodyAtSql} as body) b
     where t.id = ? and t.workspace_id = ?`,
    [id, workspaceId],
  );
  const [raw] = found.rows;
  if (raw === undefined) return null;
  const { c, m, v, t, ...row } = raw;
  return { target: asRow(postTargets, row), body: contentOf({ c, m, v, t }) };
};

/** The client of each target and that of its post, neither of which ever changes. A target without a row is left out. */
export const clientsOfTargets = async (
  knex: Knex,
  workspaceId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, { readonly clientId: string; readonly postClientId: string }>> => {
  const { rows } = await knex.raw(
    `select t.id, t.client_id as "clientId", p.client_id as "postClientId"
     from ${view('post_targets')} t join ${view('posts')} p on p.id = t.post_id
     where t.workspace_id = ? and t.id = any(?::uuid[])`,
    [workspaceId, [...ids]],
  );
  return new Map(
    rows.map(({ id, ...clients }: { id: string; clientId: string; postClientId: string }) => [id, clients]),
  );
};

type ContentKey = Pick<TargetRow, 'post_id' | 'post_revision'>;
const contentKey = ({ post_id, post_revision }: ContentKey): string => `${post_id}/${post_revision}`;

export interface TargetFilters {
  readonly postId?: string;
  readonly clientId?: string;
  /** Only targets of these clients in posts of these clients. */
  readonly clientIds?: readonly string[];
  readonly accountId?: string;
  /** Of the post. */
  readonly externalRef?: string;
  readonly platforms?: readonly Platform[];
  readonly statuses?: readonly TargetStatus[];
  /** Due instants: from inclusive, to exclusive. */
  readonly from?: string;
  readonly to?: string;
}

/** Keyset cursor of the list of targets. */
export interface DueFirst {
  readonly scheduledAt: string;
  readonly id: string;
}

/** The values asked for; null: all of them, whether a filter names each one or there is none. */
const someOf = <Value extends string>(asked: readonly Value[] | undefined, all: readonly Value[]) => {
  const values = new Set(asked ?? all);
  return values.size === all.length ? null : [...values];
};

/**
 * The leading columns of the index that yields the rows in order; none where the filters leave few rows, or where
 * another index has them in order already.
 */
const leadsOf = (workspaceId: string, filters: TargetFilters): readonly Lead[] => {
  if (filters.postId !== undefined || filters.externalRef !== undefined) return [];
  const statuses = someOf(filters.statuses, targetStatuses);
  const networks = someOf(filters.platforms, platforms);
  const status: Lead = { column: 'status', type: 'text', values: statuses ?? targetStatuses };
  const network: Lead = { column: 'platform', type: 'text', values: networks ?? platforms };
  const both = statuses === null && networks === null ? [] : [status, network];
  // All targets of an account are on its network.
  if (filters.accountId !== undefined) {
    return statuses === null ? [] : [uuids('account_id', [filters.accountId]), status];
  }
  if (filters.clientId !== undefined) {
    const isHidden = filters.clientIds?.includes(filters.clientId) === false;
    return both.length === 0 && !isHidden ? [] : [uuids('client_id', isHidden ? [] : [filters.clientId]), ...both];
  }
  const limited = filters.clientIds === undefined ? [] : [uuids('client_id', filters.clientIds), ...both];
  if (isMergeable(limited)) return limited;
  return both.length === 0 ? [] : [uuids('workspace_id', [workspaceId]), ...both];
};

/**
 * An account, as a client, has targets of one workspace only, and an account of one client and one network: where its
 * first target does not match, none does, and none is looked at.
 */
const onlyOfOwn = (query: Knex.QueryBuilder, workspaceId: string, filters: TargetFilters): void => {
  const { accountId, clientId, platforms: networks } = filters;
  const clients = clientId === undefined ? filters.clientIds : [clientId];
  const listOrNull = (values: readonly string[] | undefined) => (values === undefined ? null : [...values]);
  if (accountId !== undefined) {
    query.whereRaw(
      `(select a.workspace_id = ? and a.client_id = any(coalesce(?::uuid[], array[a.client_id]))
          and a.platform = any(coalesce(?::text[], array[a.platform]))
        from ${view('post_targets')} a where a.account_id = ? limit 1)`,
      [workspaceId, listOrNull(clients), listOrNull(networks), accountId],
    );
  } else if (clientId !== undefined) {
    query.whereRaw(`(select c.workspace_id = ? from ${view('post_targets')} c where c.client_id = ? limit 1)`, [
      workspaceId,
      clientId,
    ]);
  }
};

/** Ascending by due instant. A second statement fetches each content once, however many targets show it. */
export const listTargets = async (
  knex: Knex,
  workspaceId: string,
  filters: TargetFilters,
  { after, limit }: { readonly after: DueFirst | null; readonly limit: number },
): Promise<Page<TargetWithContent>> => {
  const leads = leadsOf(workspaceId, filters);
  const query = knex(`${view('post_targets')} as post_targets`);
  if (leads.length === 0) query.where({ workspace_id: workspaceId });
  const { postId, clientId, clientIds, accountId, platforms: networks, statuses } = filters;
  if (postId !== undefined) query.where({ post_id: postId });
  if (clientId !== undefined && isUnled(leads, 'client_id')) query.where({ client_id: clientId });
  if (clientIds !== undefined) {
    if (isUnled(leads, 'client_id')) query.whereRaw('client_id = any(?::uuid[])', [[...clientIds]]);
    query.whereRaw(
      `exists (select from ${view('posts')} p where p.id = post_targets.post_id and p.client_id = any(?::uuid[]))`,
      [[...clientIds]],
    );
  }
  if (accountId !== undefined && isUnled(leads, 'account_id')) query.where({ account_id: accountId });
  if (filters.externalRef !== undefined) {
    // An array, so that Postgres reads the few posts first and never the targets of the whole workspace.
    query.whereRaw(
      `post_id = any(array(select p.id from ${view('posts')} p where p.workspace_id = ? and p.external_ref = ?))`,
      [workspaceId, filters.externalRef],
    );
  }
  if (networks !== undefined && isUnled(leads, 'platform'))
    query.whereRaw('platform = any(?::text[])', [[...networks]]);
  if (statuses !== undefined && isUnled(leads, 'status')) query.whereRaw('status = any(?::text[])', [[...statuses]]);
  // NOTE: one lower bound alone: with two, Postgres may begin at the earlier one and pass all rows in between.
  const { from = null } = filters;
  const isBehind = after !== null && (from === null || Date.parse(after.scheduledAt) >= Date.parse(from));
  if (from !== null && !isBehind) query.where('due_at', '>=', from);
  if (filters.to !== undefined) query.where('due_at', '<', filters.to);
  if (isBehind) query.whereRaw('(due_at, id) > (?::timestamptz, ?::uuid)', [after.scheduledAt, after.id]);
  onlyOfOwn(query, workspaceId, filters);
  const asked = { by: 'due_at', order: 'asc', limit: limit + 1 } as const;
  const rowsOf =
    leads.length === 0
      ? query
      : knex(`${view('post_targets')} as post_targets`)
          .where({ workspace_id: workspaceId })
          .where('id', '=', knex.raw('any(?)', [merged(knex, query, leads, asked)]));
  const raw: Record<string, unknown>[] = await rowsOf.orderBy(['due_at', 'id']).limit(limit + 1);
  const page = pageOf(
    raw.map((row) => asRow(postTargets, row)),
    limit,
  );
  const shown = new Map(page.rows.map((row) => [contentKey(row), row]));
  if (shown.size === 0) return { rows: [], hasMore: false };
  const found = await knex.raw(
    `select t.post_id, t.post_revision, ${content}
     from unnest(?::uuid[], ?::int4[]) as t (post_id, post_revision) join ${view('posts')} p on p.id = t.post_id
     cross join lateral (select ${bodyAtSql} as body) b`,
    [[...shown.values()].map((row) => row.post_id), [...shown.values()].map((row) => row.post_revision)],
  );
  const bodies = new Map<string, TargetContent>(
    found.rows.map((row: RawContent & ContentKey) => [contentKey(row), contentOf(row)]),
  );
  const rows = page.rows.flatMap((target): TargetWithContent[] => {
    const body = bodies.get(contentKey(target));
    // The post's row is written before, or with, its first target; until then the target is not shown.
    return body === undefined ? [] : [{ target, body }];
  });
  return { rows, hasMore: page.hasMore };
};
