import type { Pool } from 'pg';
import type { Log } from '#contracts/ports/log.ts';
import { reachesEnds } from '#projections/engine/positions.ts';
import { isMediaHidden } from '#projections/models/media.ts';
import { openPostsWith } from '#projections/models/post-bodies.ts';

/** Checks that the worker makes before it removes the files of a deleted asset. */
export interface Uses {
  /**
   * How long a call that found an asset in the library may take to store a post with it, milliseconds. A post that is
   * stored or relayed later than that may find its files gone: its targets then fail and name the asset.
   */
  readonly graceMs: number;
  /** Whether the library no longer shows the asset: from then on no call can add it to a post. */
  isHidden(assetId: string): Promise<boolean>;
  /** Waits a little until the read model has every post that the log has now; false: it does not have them. */
  hasAllPosts(): Promise<boolean>;
  hasOpenPost(workspaceId: string, assetId: string): Promise<boolean>;
}

/** A working read model catches up within some milliseconds. */
const postsMs = 2_000;

export const usesOf = (pool: Pool, log: Log, graceMs = 60_000): Uses => ({
  graceMs,
  isHidden: (assetId) => isMediaHidden(pool, assetId),
  hasAllPosts: () => reachesEnds(pool, log, 'posts', postsMs),
  hasOpenPost: async (workspaceId, assetId) => (await openPostsWith(pool, workspaceId, assetId, 1)).length > 0,
});
