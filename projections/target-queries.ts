import type { Knex } from 'knex';
import type { Platform } from '#schemas/common.ts';
import type { TargetStatus } from '#schemas/target.ts';
import { bodyAtSql } from './post-bodies.ts';
import { asRow, type Page, pageOf } from './rows.ts';
import { postTargets, type TargetContent, type TargetRow } from './targets.ts';

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
    `select t.*, ${content} from read.post_targets t join read.posts p on p.id = t.post_id
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
     from read.post_targets t join read.posts p on p.id = t.post_id
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

/** Ascending by due instant. A second statement fetches each content once, however many targets show it. */
export const listTargets = async (
  knex: Knex,
  workspaceId: string,
  filters: TargetFilters,
  { after, limit }: { readonly after: DueFirst | null; readonly limit: number },
): Promise<Page<TargetWithContent>> => {
  const query = knex('read.post_targets').where({ workspace_id: workspaceId });
  if (filters.postId !== undefined) query.where({ post_id: filters.postId });
  if (filters.clientId !== undefined) query.where({ client_id: filters.clientId });
  const { clientIds } = filters;
  if (clientIds !== undefined) {
    query.whereRaw(
      `client_id = any(?::uuid[]) and exists (
         select from read.posts p where p.id = post_targets.post_id and p.client_id = any(?::uuid[]))`,
      [[...clientIds], [...clientIds]],
    );
  }
  if (filters.accountId !== undefined) query.where({ account_id: filters.accountId });
  if (filters.externalRef !== undefined) {
    // An array, so that Postgres reads the few posts first and never the targets of the whole workspace.
    query.whereRaw(
      'post_id = any(array(select p.id from read.posts p where p.workspace_id = ? and p.external_ref = ?))',
      [workspaceId, filters.externalRef],
    );
  }
  if (filters.platforms !== undefined) query.whereRaw('platform = any(?::text[])', [[...filters.platforms]]);
  if (filters.statuses !== undefined) query.whereRaw('status = any(?::text[])', [[...filters.statuses]]);
  if (filters.from !== undefined) query.where('due_at', '>=', filters.from);
  if (filters.to !== undefined) query.where('due_at', '<', filters.to);
  if (after !== null) query.whereRaw('(due_at, id) > (?::timestamptz, ?::uuid)', [after.scheduledAt, after.id]);
  const raw: Record<string, unknown>[] = await query.orderBy(['due_at', 'id']).limit(limit + 1);
  const page = pageOf(
    raw.map((row) => asRow(postTargets, row)),
    limit,
  );
  const shown = new Map(page.rows.map((row) => [contentKey(row), row]));
  if (shown.size === 0) return { rows: [], hasMore: false };
  const found = await knex.raw(
    `select t.post_id, t.post_revision, ${content}
     from unnest(?::uuid[], ?::int4[]) as t (post_id, post_revision) join read.posts p on p.id = t.post_id
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
