import type { Pool } from 'pg';

/**
 * Posts whose targets lag behind their plan: a worker crashed between the plan and its targets, or is under way. A
 * partial index holds only these posts, and they are few.
 */

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
select p.id::text as id, p.updated_at::text as "updatedAt" from read.posts p
where p.fan_out_behind and (p.updated_at, p.id) > ($1::timestamptz, $2::uuid)
order by p.updated_at, p.id limit 100`;

export const postsBehind = async (pool: Pool, after: PostBehind): Promise<readonly PostBehind[]> =>
  (await pool.query<PostBehind>(behindSql, [after.updatedAt, after.id])).rows;

/** Posts that are behind, counted up to `limit`, and how long ago the first of them was changed, seconds. */
export const countPostsBehind = async (
  pool: Pool,
  limit: number,
): Promise<{ readonly posts: number; readonly oldestSeconds: number }> => {
  const { rows } = await pool.query<{ posts: number; age: number | null }>(
    `select count(*)::int as posts, extract(epoch from now() - min(updated_at))::float8 as age from (
       select updated_at from read.posts where fan_out_behind order by updated_at limit ${limit}) as behind`,
  );
  return { posts: rows[0]?.posts ?? 0, oldestSeconds: rows[0]?.age ?? 0 };
};

/** The post whose plan names a target that is not written yet; null where there is none. */
export const postPlanning = async (pool: Pool, workspaceId: string, targetId: string): Promise<string | null> => {
  const { rows } = await pool.query<{ id: string }>(
    `select id from read.posts where fan_out_behind and workspace_id = $1 and standings ? $2 limit 1`,
    [workspaceId, targetId],
  );
  return rows[0]?.id ?? null;
};

/** The post that asks for this approval, whose request may not be written yet; null where there is none. */
export const postAskingFor = async (pool: Pool, workspaceId: string, approvalId: string): Promise<string | null> => {
  const { rows } = await pool.query<{ id: string }>(
    `select id from read.posts
     where approval ->> 'status' = 'pending' and approval ->> 'id' = $2 and workspace_id = $1 limit 1`,
    [workspaceId, approvalId],
  );
  return rows[0]?.id ?? null;
};
