import type { Pool } from 'pg';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import type { NewestFirst } from '#projections/engine/rows.ts';
import { renderPost, renderPostRow } from '#projections/models/posts.ts';
import { getPostUnless } from '#projections/queries/one-post.ts';
import { type PostFilters, listPosts as rowsOf } from '#projections/queries/post-queries.ts';
import { AsOfQuery, IdParams } from '#schemas/http/common.ts';
import { Post, PostQuery, PostSummary } from '#schemas/http/post.ts';
import { withinLimit } from '../call/access.ts';
import { listPage } from '../call/cursor.ts';
import { isShort } from '../call/json.ts';
import { operation } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { readRow } from '../call/rows.ts';
import { filtersOf } from './body.ts';
import { postDataExample, postRowExample, postsTag } from './examples.ts';
import { answerPostThen, listPostsThen } from './past.ts';

/**
 * Posts as GET shows them. Callers poll a post until it is published: each look asks Postgres whether the post or one of
 * its targets has changed, and an unchanged post is neither read nor rendered again.
 */

interface Shown {
  /** A discarded draft can no longer be read. */
  readonly isDiscarded: boolean;
  readonly revision: number;
}
/** The post as JSON. */
interface ShortPost extends Shown {
  readonly json: string;
}
/** A post that is too large to be kept, and to be written at once. */
interface LongPost extends Shown {
  readonly json: null;
  readonly post: object;
}
type CachedPost = ShortPost | LongPost;

interface Kept {
  readonly version: string;
  readonly shown: ShortPost;
}

/** Characters of all texts that are kept, and of the largest that is: some 3,000 posts of ten targets. */
const maxCharacters = 32 * 1024 * 1024;
const maxOfOne = 256 * 1024;

/** The latest used; the text that was used longest ago is dropped first. */
export class ShownPosts {
  readonly #pool: Pool;
  readonly #kept: BoundedMap<string, Kept>;

  constructor(pool: Pool, max: number = maxCharacters) {
    this.#pool = pool;
    this.#kept = new BoundedMap(max, { weigh: ({ shown }) => shown.json.length });
  }

  /** Characters of the texts that are kept now. */
  get characters(): number {
    return this.#kept.weight;
  }

  /** As its rows are now; null where the workspace has no such post. */
  async get(workspaceId: string, id: string): Promise<CachedPost | null> {
    const kept = this.#kept.get(id);
    const found = await getPostUnless(this.#pool, workspaceId, id, kept?.version ?? '');
    if (found === null) return null;
    const { version, whole } = found;
    if (whole === null) return kept === undefined ? null : this.#keep(id, kept);
    const { post, targets } = whole;
    const rendered = renderPost(post, targets);
    const shown = { isDiscarded: post.status === 'discarded', revision: post.revision };
    if (!isShort(rendered, maxOfOne)) {
      this.#kept.delete(id);
      return { ...shown, json: null, post: rendered };
    }
    return this.#keep(id, { version, shown: { ...shown, json: JSON.stringify(rendered) } });
  }

  #keep(id: string, kept: Kept): CachedPost {
    this.#kept.set(id, kept);
    return kept.shown;
  }
}

const byPool = new WeakMap<Pool, ShownPosts>();

/** One for each pool, made at the first look. */
const shownPosts = (pool: Pool): ShownPosts => {
  const known = byPool.get(pool) ?? new ShownPosts(pool);
  byPool.set(pool, known);
  return known;
};

export const getPost = operation({
  id: 'getPost',
  method: 'GET',
  path: '/posts/{id}',
  tag: postsTag,
  summary: 'Get a post with its variants and targets',
  description: 'Right after a write of your own, send its X-Consistency-Token: the answer then shows that write.',
  scope: 'posts.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  query: AsOfQuery,
  answer: Post,
  codes: ['history_too_long'],
  example: { data: postDataExample },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return answerPostThen(call, call.query.asOf);
    const posts = shownPosts(call.deps.pool);
    const shown = await readRow(call, 'post', ['posts'], (id) => posts.get(call.workspaceId, id));
    if (shown.isDiscarded) throw notFound('post');
    const { json, revision } = shown;
    return json === null ? { data: shown.post, revision } : { json, revision };
  },
});

export const listPosts = operation({
  id: 'listPosts',
  method: 'GET',
  path: '/posts',
  tag: postsTag,
  summary: 'List posts',
  description: 'The newest first, without variants and targets: GET /posts/{id} has them.',
  scope: 'posts.read',
  limited: 'filtered',
  idempotent: 'none',
  cost: 1,
  query: PostQuery,
  answer: PostSummary,
  list: true,
  codes: ['history_too_long'],
  example: { data: postRowExample },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return listPostsThen(call, call.query.asOf);
    await call.behind(['posts']);
    const { limit: _limit, cursor: _cursor, status: statuses, platform: platforms, ...more } = call.query;
    const filters: PostFilters = { ...filtersOf({ ...more, statuses, platforms }), ...withinLimit(call.principal) };
    return listPage('listPosts', call, {
      rows: (page: { after: NewestFirst | null; limit: number }, knex) => rowsOf(knex, call.workspaceId, filters, page),
      keyOf: (row) => ({ createdAt: row.created_at, id: row.id }),
      show: renderPostRow,
    });
  },
});
