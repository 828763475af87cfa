import type { Pool } from 'pg';
import { batchesOf } from '#contracts/base/batches.ts';
import { asRow } from '../engine/rows.ts';
import { lastDecisionSql } from '../models/approvals.ts';
import { posts, type ShownPost, shownOfPost } from '../models/posts.ts';
import { shownCampaignOf } from '../models/sql.ts';
import { postTargets, type ShownTarget, shownOfTarget } from '../models/targets.ts';
import { ownProjections, view } from '../shapes.ts';

/** One post with its targets, as GET /posts/{id} shows it. */

export interface PostWithTargets {
  readonly post: ShownPost;
  readonly targets: readonly ShownTarget[];
}

const maxPostsAtOnce = 8;

/**
 * Equal while an answer about post `p` stays the same: the generation of the tables, the revisions of the post and of
 * each target, the columns that are counted, which change between two revisions of the post, its last decision, and
 * whether its campaign is deleted.
 */
const versionOfPost = `concat_ws(' ', (select l.live from ${ownProjections} l where l.name = 'posts'), p.revision, p.counts,
  p.publishing_count, extract(epoch from p.scheduled_at), ${shownCampaignOf('p')}, ${lastDecisionSql('p')},
  (select string_agg(revision::text, ',' order by id) from ${view('post_targets')} as post_targets where post_id = p.id))`;

interface FoundPost {
  readonly workspaceId: string;
  readonly version: string;
  /** Null where the version is the one that the caller has. */
  readonly whole: PostWithTargets | null;
}

const keyOf = (id: string, version: string): string => `${id} ${version}`;

const columns = shownOfPost.map((name) =>
  name === 'campaign_id' ? `${shownCampaignOf('p')} as campaign_id` : `p.${name}`,
);

/** One statement: the version of each post and, where the caller has another, its shown columns and its targets. */
const postsById = batchesOf(async (pool: Pool, keys): Promise<ReadonlyMap<string, FoundPost>> => {
  const { rows } = await pool.query({
    name: 'posts-by-id',
    text: `
      select p.id, k.known, p.workspace_id as "workspaceId", v.version, case when v.version <> k.known then
        (select row_to_json(s) from (select ${columns.join(', ')}, ${lastDecisionSql('p')} as last_decision,
          (select json_agg(t) from (select ${shownOfTarget.join(', ')} from ${view('post_targets')} as post_targets where post_id = p.id) t)
          as targets) s) end as whole
      from unnest($1::uuid[], $2::text[]) as k (id, known) join ${view('posts')} p on p.id = k.id
      cross join lateral (select ${versionOfPost} as version offset 0) v`,
    values: [keys.map((key) => key.slice(0, uuidLength)), keys.map((key) => key.slice(uuidLength + 1))],
  });
  return new Map(
    rows.map(({ id, known, workspaceId, version, whole }) => [
      keyOf(id, known),
      { workspaceId, version, whole: whole === null ? null : withTypes(whole) },
    ]),
  );
}, maxPostsAtOnce);

const uuidLength = 36;

const withTypes = ({ targets, ...row }: Record<string, unknown>): PostWithTargets => ({
  post: asRow(posts, row),
  targets: ((targets ?? []) as Record<string, unknown>[]).map((one) => asRow(postTargets, one)),
});

/** @param known version of the post that the caller has; empty: none */
export const getPostUnless = async (
  pool: Pool,
  workspaceId: string,
  id: string,
  known: string,
): Promise<FoundPost | null> => {
  const found = await postsById(pool, keyOf(id, known));
  return found?.workspaceId === workspaceId ? found : null;
};

export const getPost = async (pool: Pool, workspaceId: string, id: string): Promise<PostWithTargets | null> =>
  (await getPostUnless(pool, workspaceId, id, ''))?.whole ?? null;
