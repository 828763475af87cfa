import type { Pool } from 'pg';
import { type Frontier, type Hash, type SubtreePlace, type Subtrees, withLeaf } from '#domain/tree.ts';

/**
 * The tree over a workspace's feed as Postgres keeps it: each leaf with its event, and the roots of whole subtrees at every
 * fourth level. A root between two such levels is made from at most 16 of the lower one.
 */

const stride = 4;
const block = 2 ** stride;

export interface KeptSubtree extends SubtreePlace {
  readonly hash: Hash;
}

/** The frontier with these leaves behind it, and the subtrees that they complete and Postgres keeps. */
export const grow = (
  from: Frontier,
  leaves: readonly Hash[],
): { readonly frontier: Frontier; readonly kept: readonly KeptSubtree[] } => {
  const kept: KeptSubtree[] = [];
  const frontier = leaves.reduce(
    (before, leaf) =>
      withLeaf(before, leaf, ({ level, index }, hash) => {
        if (level % stride === 0) kept.push({ level, index, hash });
      }),
    from,
  );
  return { frontier, kept };
};

/** Of a frontier, as its column has it: the hashes one behind the other. */
export const frontierOf = (size: number, bytes: Buffer): Frontier => ({
  size,
  hashes: Array.from({ length: bytes.length / 32 }, (_, at) => bytes.subarray(at * 32, at * 32 + 32)),
});

type Queries = Pick<Pool, 'query'>;

/** Up to 16 neighbours of one kept level. */
const readBlock = async (pool: Queries, workspaceId: string, level: number, from: number): Promise<readonly Hash[]> => {
  const found =
    level === 0
      ? 'ops.feed_events where workspace_id = $1 and sequence > $2 and sequence <= $2 + $3'
      : `ops.feed_subtrees where workspace_id = $1 and level = ${level} and index >= $2 and index < $2 + $3`;
  // One value instead of 16 rows.
  const { rows } = await pool.query<{ readonly hashes: Buffer | null }>({
    name: `feed-block-${level}`,
    text: `select string_agg(hash, ''::bytea order by ${level === 0 ? 'sequence' : 'index'}) as hashes from ${found}`,
    values: [workspaceId, from, block],
  });
  const hashes = rows[0]?.hashes ?? Buffer.alloc(0);
  return frontierOf(0, hashes).hashes;
};

/** The subtrees of a workspace's feed. It reads each block once: keep it for one question. */
export const subtreesOf = (pool: Queries, workspaceId: string): Subtrees => {
  const blocks = new Map<string, Promise<readonly Hash[]>>();
  return async ({ level, index }) => {
    const lower = Math.floor(level / stride) * stride;
    const first = index * 2 ** (level - lower);
    const from = Math.floor(first / block) * block;
    const name = `${lower}/${from}`;
    const reading = blocks.get(name) ?? readBlock(pool, workspaceId, lower, from);
    blocks.set(name, reading);
    const at = first - from;
    const hashes = (await reading).slice(at, at + 2 ** (level - lower));
    if (hashes.length < 2 ** (level - lower)) throw new RangeError(`the feed has no subtree ${level}/${index}`);
    const [root] = grow({ size: 0, hashes: [] }, hashes).frontier.hashes;
    return root as Hash;
  };
};
