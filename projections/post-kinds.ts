import type { Knex } from 'knex';
import type { PostKind } from '#domain/best-times.ts';
import { platformsWithUses, useOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import type { MediaKind } from '#schemas/media.ts';
import { bodyAtSql } from './post-bodies.ts';

interface Row {
  readonly id: string;
  readonly platform: Platform;
  readonly requestedType: string | null;
  readonly files: number;
  /** Kind of the first file; null where the post has no file or the file's row is gone. */
  readonly kind: MediaKind | null;
}

const kindOf = ({ platform, requestedType, files, kind }: Row): PostKind => {
  const kinds = Array.from({ length: files }, () => kind ?? 'image');
  const use = useOf(platform, { contentType: requestedType ?? undefined }, kinds);
  return use === 'reel' || use === 'story' ? use : 'feed';
};

/**
 * The kind as which each published target went out. A target that is absent from the result went to the feed. No
 * network that has reels or stories has threads. Postgres picks the few values from each body, since a body may hold
 * the texts of all networks.
 * @param targetIds bounded by the caller: each id costs three reads by key
 */
export const postKinds = async (
  knex: Knex,
  workspaceId: string,
  targetIds: readonly string[],
): Promise<ReadonlyMap<string, PostKind>> => {
  if (targetIds.length === 0) return new Map();
  const found = await knex.raw<{ rows: readonly Row[] }>(
    `select t.id, t.platform, v.variant -> 'overrides' ->> 'contentType' as "requestedType",
       coalesce(jsonb_array_length(f.ids), 0)::int4 as files, m.kind
     from read.post_targets t
     join read.posts p on p.id = t.post_id
     cross join lateral (select ${bodyAtSql} as body) b
     left join lateral (
       select one as variant from jsonb_array_elements(b.body -> 'variants') one
       where one ->> 'platform' = t.platform limit 1) v on true
     cross join lateral (
       select coalesce(nullif(v.variant -> 'mediaIdsOverride', 'null'), b.body -> 'mediaIds') as ids) f
     left join read.media m on m.id = (f.ids ->> 0)::uuid and m.workspace_id = t.workspace_id
     where t.workspace_id = ? and t.id = any(?::uuid[]) and t.platform = any(?)`,
    [workspaceId, [...targetIds], [...platformsWithUses]],
  );
  return new Map(found.rows.map((row) => [row.id, kindOf(row)]));
};
