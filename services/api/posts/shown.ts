import type { Pool } from 'pg';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { getPostUnless } from '#projections/one-post.ts';
import { renderPost } from '#projections/posts.ts';
import { isShort } from '../json-pieces.ts';

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
export type ShownPost = ShortPost | LongPost;

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
  async get(workspaceId: string, id: string): Promise<ShownPost | null> {
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

  #keep(id: string, kept: Kept): ShownPost {
    this.#kept.set(id, kept);
    return kept.shown;
  }
}

const byPool = new WeakMap<Pool, ShownPosts>();

/** One for each pool, made at the first look. */
export const shownPosts = (pool: Pool): ShownPosts => {
  const known = byPool.get(pool) ?? new ShownPosts(pool);
  byPool.set(pool, known);
  return known;
};
