import type { Knex } from 'knex';
import type { Platform } from '#schemas/common.ts';
import type { TargetStatus } from '#schemas/target.ts';
import { asRow, type Page, pageOf } from './rows.ts';
import { postTargets, type TargetContent, type TargetRow } from './targets.ts';

/** Targets as they are read, each with the content of its post. */

/** A target and the content of its post that it shows. */
export interface TargetWithContent {
  readonly target: TargetRow;
  readonly body: TargetContent;
}

const content =
  "p.body -> 'content' as c, p.body -> 'mediaIds' as m, p.body -> 'variants' as v, p.body -> 'thread' as t";
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
     where t.id = ? and t.workspace_id = ?`,
    [id, workspaceId],
  );
  const [raw] = found.rows;
  if (raw === undefined) return null;
  const { c, m, v, t, ...row } = raw;
  return { target: asRow(postTargets, row), body: contentOf({ c, m, v, t }) };
};

export interface TargetFilters {
  readonly postId?: string;
  readonly clientId?: string;
  readonly accountId?: string;
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

/** Ascending by due instant. A second statement fetches each post's content once, however many targets show it. */
export const listTargets = async (
  knex: Knex,
  workspaceId: string,
  filters: TargetFilters,
  { after, limit }: { readonly after: DueFirst | null; readonly limit: number },
): Promise<Page<TargetWithContent>> => {
  const query = knex('read.post_targets').where({ workspace_id: workspaceId });
  if (filters.postId !== undefined) query.where({ post_id: filters.postId });
  if (filters.clientId !== undefined) query.where({ client_id: filters.clientId });
  if (filters.accountId !== undefined) query.where({ account_id: filters.accountId });
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
  const postIds = [...new Set(page.rows.map((row) => row.post_id))];
  if (postIds.length === 0) return { rows: [], hasMore: false };
  const found = await knex.raw(`select p.id, ${content} from read.posts p where p.id = any(?::uuid[])`, [postIds]);
  const bodies = new Map<string, TargetContent>(
    found.rows.map((row: RawContent & { readonly id: string }) => [row.id, contentOf(row)]),
  );
  const rows = page.rows.flatMap((target): TargetWithContent[] => {
    const body = bodies.get(target.post_id);
    // The post's row is written before, or with, its first target; until then the target is not shown.
    return body === undefined ? [] : [{ target, body }];
  });
  return { rows, hasMore: page.hasMore };
};
