import type { Knex } from 'knex';
import type { Platform } from '#schemas/common.ts';
import { type Page, type PageOf, pageOf, toIso } from './rows.ts';

/** Posts that went out, with those of their targets that did. */

export interface PublishedTarget {
  readonly id: string;
  readonly platform: Platform;
}

export interface PublishedPost {
  readonly id: string;
  /** ISO 8601: when the first of its targets went out. Null: none has. */
  readonly published_at: string | null;
  /** ISO 8601: when the last of the targets that are shown did; null where none of them has. */
  readonly last_published_at: string | null;
  readonly targets: readonly PublishedTarget[];
}

export interface PublishedFilters {
  readonly clientId?: string;
  readonly accountId?: string;
  readonly platforms?: readonly Platform[];
}

/** Keyset cursor: the newest first. */
export interface PublishedFirst {
  readonly publishedAt: string;
  readonly id: string;
}

/** The targets of post `p` that went out and fit the filters, as one json value; null when there are none. */
const targetsOf = ({ clientId, accountId, platforms }: PublishedFilters) => {
  const where: (readonly [string, Knex.RawBinding])[] = [];
  if (clientId !== undefined) where.push(['t.client_id = ?', clientId]);
  if (accountId !== undefined) where.push(['t.account_id = ?', accountId]);
  if (platforms !== undefined) where.push(['t.platform = any(?::text[])', [...platforms]]);
  return {
    sql: `select json_agg(json_build_object('id', t.id, 'platform', t.platform) order by t.platform, t.id) as targets,
        max(t.published_at) as last_published_at
      from read.post_targets t where t.post_id = p.id and t.published_at is not null
      ${where.map(([one]) => `and ${one}`).join(' ')}`,
    bindings: where.map(([, value]) => value),
  };
};

const asPost = (raw: Readonly<Record<string, unknown>>): PublishedPost => ({
  id: String(raw.id),
  published_at: toIso(raw.published_at),
  last_published_at: toIso(raw.last_published_at),
  targets: (raw.targets ?? []) as readonly PublishedTarget[],
});

/**
 * Those that went out in a range of time, and have a target that fits the filters; the newest first.
 * @param range.to exclusive
 */
export const listPublished = async (
  knex: Knex,
  workspaceId: string,
  range: { readonly from: string; readonly to: string },
  filters: PublishedFilters,
  { after, limit }: PageOf<PublishedFirst>,
): Promise<Page<PublishedPost>> => {
  const targets = targetsOf(filters);
  const found = await knex.raw(
    `select p.id, p.published_at, f.last_published_at, f.targets from read.posts p
     cross join lateral (${targets.sql}) f
     where p.workspace_id = ? and p.published_at >= ?::timestamptz and p.published_at < ?::timestamptz
       and f.targets is not null
       ${after === null ? '' : 'and (p.published_at, p.id) < (?::timestamptz, ?::uuid)'}
     order by p.published_at desc, p.id desc limit ?`,
    [
      ...targets.bindings,
      workspaceId,
      range.from,
      range.to,
      ...(after === null ? [] : [after.publishedAt, after.id]),
      limit + 1,
    ],
  );
  return pageOf(found.rows.map(asPost), limit);
};

/** One post, whether it went out or not. */
export const getPublished = async (
  knex: Knex,
  workspaceId: string,
  id: string,
  filters: PublishedFilters,
): Promise<PublishedPost | null> => {
  const targets = targetsOf(filters);
  const found = await knex.raw(
    `select p.id, p.published_at, f.last_published_at, f.targets from read.posts p cross join lateral (${targets.sql}) f
     where p.id = ? and p.workspace_id = ?`,
    [...targets.bindings, id, workspaceId],
  );
  const [raw] = found.rows;
  return raw === undefined ? null : asPost(raw);
};
