import type { Pool } from 'pg';

/** Which posts may still be published with an asset. */

/** Ids of all assets that bodies name, as an array; must agree with `mediaIdsOf` of the domain. */
const mediaIn = (json: string, body: string): string =>
  ['mediaIds[*]', 'variants[*].mediaIdsOverride[*]', 'thread.segments[*].mediaIds[*]', 'coverMediaId']
    .map((path) => `jsonb_path_query_array(${json}, '${body}.${path} ? (@ != null)')`)
    .join(' || ');
export const mediaOf = mediaIn('body', '$');
export const mediaOfEarlier = mediaIn('earlier', '$.bodies.*');

/** Posts that may still be published or scheduled. */
const isOpen = `status in ('draft', 'pending_approval', 'scheduled', 'publishing')`;
/** The order matters: for a post that is already out, Postgres then never reads the body. */
export const isOpenWithMedia = `${isOpen} and (${mediaOf}) <> '[]'`;
/** Few posts were ever revised. */
export const isOpenWithEarlierMedia = `${isOpen} and earlier is not null`;

/**
 * The post `p` has a target that still goes out with another body that names the asset, or asks for a body that names it
 * and that its targets may not have yet.
 */
const isNeededEarlier = `((${mediaIn("(p.earlier -> 'bodies' -> (p.body_state ->> 'asked'))", '$')}) @> $2::jsonb or exists (
  select 1 from read.post_targets t
  where t.post_id = p.id and t.post_revision is distinct from p.body_revision and t.status not in ('published', 'failed', 'canceled')
    and (${mediaIn("(p.earlier -> 'bodies' -> t.post_revision::text)", '$')}) @> $2::jsonb))`;

/** Posts of a workspace that may still be published with this asset, at most `limit`. */
export const openPostsWith = async (
  pool: Pool,
  workspaceId: string,
  assetId: string,
  limit: number,
): Promise<readonly { readonly id: string; readonly clientId: string }[]> => {
  const { rows } = await pool.query<{ id: string; clientId: string }>(
    `select id::text, client_id::text as "clientId" from read.posts
     where (${mediaOf}) @> $2::jsonb and ${isOpenWithMedia} and workspace_id = $1
     union
     select id::text, client_id::text from read.posts p
     where (${mediaOfEarlier}) @> $2::jsonb and ${isOpenWithEarlierMedia} and workspace_id = $1 and ${isNeededEarlier}
     limit $3`,
    [workspaceId, JSON.stringify([assetId]), limit],
  );
  return rows;
};
