import type { Knex } from 'knex';
import { excerptOf } from '#domain/post/content.ts';
import type { Platform } from '#schemas/common.ts';
import { excerptLength } from '#schemas/post.ts';
import { type Page, type PageOf, pageOf, toIso } from '../engine/rows.ts';
import { view } from '../shapes.ts';

/** Published posts, each with its published targets. */

export interface PublishedTarget {
  readonly id: string;
  readonly platform: Platform;
  readonly clientId: string;
  readonly accountId: string;
  /** Null: its network gave none. */
  readonly permalink: string | null;
}

export interface PublishedPost {
  readonly id: string;
  readonly client_id: string;
  /** ISO 8601: when the first target was published. Null: none was. */
  readonly published_at: string | null;
  /** ISO 8601: when the last of the shown targets was published; null where none was. */
  readonly last_published_at: string | null;
  readonly targets: readonly PublishedTarget[];
}

export interface PublishedFilters {
  readonly clientId?: string;
  readonly accountId?: string;
  /** Only posts of these clients, whichever client a target has. */
  readonly postClientIds?: readonly string[];
  readonly platforms?: readonly Platform[];
}

/** Instants in ISO 8601; `to` is exclusive. */
interface Range {
  readonly from: string;
  readonly to: string;
}

/** Keyset cursor: the newest first. */
export interface PublishedFirst {
  readonly publishedAt: string;
  readonly id: string;
}

/** The published targets of post `p` that fit the filters, as one json value; null when there are none. */
const targetsOf = ({ clientId, accountId, platforms }: PublishedFilters) => {
  const where: (readonly [string, Knex.RawBinding])[] = [];
  if (clientId !== undefined) where.push(['t.client_id = ?', clientId]);
  if (accountId !== undefined) where.push(['t.account_id = ?', accountId]);
  if (platforms !== undefined) where.push(['t.platform = any(?::text[])', [...platforms]]);
  return {
    sql: `select json_agg(json_build_object('id', t.id, 'platform', t.platform, 'clientId', t.client_id,
        'accountId', t.account_id, 'permalink', t.permalink) order by t.platform, t.id) as targets,
        max(t.published_at) as last_published_at
      from ${view('post_targets')} t where t.post_id = p.id and t.published_at is not null
      ${where.map(([one]) => `and ${one}`).join(' ')}`,
    bindings: where.map(([, value]) => value),
  };
};

/** Of post `p`. */
const ofClients = ({
  postClientIds,
}: PublishedFilters): { readonly sql: string; readonly bindings: Knex.RawBinding[] } =>
  postClientIds === undefined
    ? { sql: '', bindings: [] }
    : { sql: 'and p.client_id = any(?::uuid[])', bindings: [[...postClientIds]] };

const asPost = (raw: Readonly<Record<string, unknown>>): PublishedPost => ({
  id: String(raw.id),
  client_id: String(raw.client_id),
  published_at: toIso(raw.published_at),
  last_published_at: toIso(raw.last_published_at),
  targets: (raw.targets ?? []) as readonly PublishedTarget[],
});

/** Posts published in a range of time that have a target which fits the filters; the newest first. */
export const listPublished = async (
  knex: Knex,
  workspaceId: string,
  range: Range,
  filters: PublishedFilters,
  { after, limit }: PageOf<PublishedFirst>,
): Promise<Page<PublishedPost>> => {
  const targets = targetsOf(filters);
  const found = await knex.raw(
    `select p.id, p.client_id, p.published_at, f.last_published_at, f.targets from ${view('posts')} p
     cross join lateral (${targets.sql}) f
     where p.workspace_id = ? and p.published_at >= ?::timestamptz and p.published_at < ?::timestamptz
       and f.targets is not null ${ofClients(filters).sql}
       ${after === null ? '' : 'and (p.published_at, p.id) < (?::timestamptz, ?::uuid)'}
     order by p.published_at desc, p.id desc limit ?`,
    [
      ...targets.bindings,
      workspaceId,
      range.from,
      range.to,
      ...ofClients(filters).bindings,
      ...(after === null ? [] : [after.publishedAt, after.id]),
      limit + 1,
    ],
  );
  return pageOf(found.rows.map(asPost), limit);
};

/** The posts among these ids that `listPublished` would list, in no order. */
export const publishedByIds = async (
  knex: Knex,
  workspaceId: string,
  ids: readonly string[],
  range: Range,
  filters: PublishedFilters,
): Promise<readonly PublishedPost[]> => {
  const targets = targetsOf(filters);
  const found = await knex.raw(
    `select p.id, p.client_id, p.published_at, f.last_published_at, f.targets from ${view('posts')} p
     cross join lateral (${targets.sql}) f
     where p.id = any(?::uuid[]) and p.workspace_id = ? and p.published_at >= ?::timestamptz
       and p.published_at < ?::timestamptz and f.targets is not null ${ofClients(filters).sql}`,
    [...targets.bindings, [...ids], workspaceId, range.from, range.to, ...ofClients(filters).bindings],
  );
  return found.rows.map(asPost);
};

/** How many posts were published. */
export interface PublishedCount {
  readonly all: number;
  readonly byPlatform: ReadonlyMap<Platform, number>;
}

/**
 * Counts posts of which a target that fits the filters was published in the range: each post once, and once on each
 * network; both ranges in one statement.
 * @param before an earlier range, or none
 */
export const countPublished = async (
  knex: Knex,
  workspaceId: string,
  range: Range,
  before: Range | null,
  { clientId, accountId, platforms }: PublishedFilters,
): Promise<{ readonly current: PublishedCount; readonly previous: PublishedCount | null }> => {
  const query = knex(`${view('post_targets')} as post_targets`)
    .select(
      knex.raw('published_at >= ?::timestamptz as current', [range.from]),
      'platform',
      knex.raw('count(distinct post_id)::int4 as posts'),
    )
    .where({ workspace_id: workspaceId })
    .whereRaw('published_at >= ?::timestamptz and published_at < ?::timestamptz', [(before ?? range).from, range.to])
    .groupByRaw('grouping sets ((1), (1, 2))');
  if (before !== null)
    query.whereRaw('(published_at >= ?::timestamptz or published_at < ?::timestamptz)', [range.from, before.to]);
  if (clientId !== undefined) query.andWhere({ client_id: clientId });
  if (accountId !== undefined) query.andWhere({ account_id: accountId });
  if (platforms !== undefined) query.whereRaw('platform = any(?::text[])', [[...platforms]]);
  const rows: { current: boolean; platform: Platform | null; posts: number }[] = await query;
  const of = (wanted: boolean): PublishedCount => {
    const found = rows.filter(({ current }) => current === wanted);
    const networks = found.flatMap(({ platform, posts }) => (platform === null ? [] : [[platform, posts] as const]));
    return { all: found.find(({ platform }) => platform === null)?.posts ?? 0, byPlatform: new Map(networks) };
  };
  return { current: of(true), previous: before === null ? null : of(false) };
};

/** One post, published or not. */
export const getPublished = async (
  knex: Knex,
  workspaceId: string,
  id: string,
  filters: PublishedFilters,
): Promise<PublishedPost | null> => {
  const targets = targetsOf(filters);
  const found = await knex.raw(
    `select p.id, p.client_id, p.published_at, f.last_published_at, f.targets from ${view('posts')} p cross join lateral (${targets.sql}) f
     where p.id = ? and p.workspace_id = ?`,
    [...targets.bindings, id, workspaceId],
  );
  const [raw] = found.rows;
  return raw === undefined ? null : asPost(raw);
};

/**
 * The beginning of the released text of each of these posts, by id. A body is long, so it is read for the posts that
 * an answer shows, and not for those that a list walks over.
 */
export const excerptsOf = async (
  knex: Knex,
  workspaceId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> => {
  if (ids.length === 0) return new Map();
  const found = await knex.raw<{ rows: readonly { readonly id: string; readonly text: string | null }[] }>(
    `select id, left(coalesce(nullif(body->>'content', ''), (
         select segment->>'content' from jsonb_array_elements(body->'thread'->'segments') with ordinality as s (segment, n)
         where segment->>'content' <> '' order by n limit 1
       )), ${excerptLength}) as text
     from ${view('posts')} as posts where id = any(?::uuid[]) and workspace_id = ?`,
    [[...ids], workspaceId],
  );
  return new Map(found.rows.map(({ id, text }) => [id, excerptOf(text ?? '')]));
};
