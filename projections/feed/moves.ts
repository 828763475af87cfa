import { hash } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { checkpointWith } from './sign.ts';

/**
 * What joins the feed of a workspace to the one that it had in another installation. The import begins an epoch whose first
 * checkpoint has the size and the root of the last one there, and names the keys that signed there. Whoever kept a checkpoint
 * of the origin verifies it by those keys, which the key of this installation vouches for.
 */

/** One move. */
export interface FeedMove {
  /** The checkpoint with which this installation took the workspace over. */
  readonly statement: string;
  /** The last checkpoint of the origin. */
  readonly origin: string;
}

type Queries = Pick<Pool, 'query'>;

/** The newest first; none: the workspace was made here. */
export const movesOf = async (pool: Queries, workspaceId: string): Promise<readonly FeedMove[]> => {
  const { rows } = await pool.query<{ readonly chain: readonly FeedMove[] }>(
    'select chain from ops.workspace_moves where workspace_id = $1',
    [workspaceId],
  );
  return rows[0]?.chain ?? [];
};

export interface TakenOver {
  readonly workspaceId: string;
  /** Of the origin. */
  readonly epoch: number;
  readonly size: number;
  /** Base64. */
  readonly root: string;
  /** The last checkpoint of the origin. */
  readonly note: string;
  /** Public keys that signed there, as verifiers take them. */
  readonly verifiers: readonly string[];
  /** Former moves. */
  readonly moves: readonly FeedMove[];
  /** Of the last event in the store. */
  readonly position: bigint;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Begins the epoch, signs its first checkpoint and notes that the import has ended: all or nothing. The number of the epoch is above
 * that of the origin, so that a cursor from there is one of a former epoch of which everything was kept.
 */
export const takeOverFeed = async (pool: Pool, secrets: Secrets, taken: TakenOver): Promise<void> => {
  await inTransaction(
    pool,
    async (tx) => {
      await tx.query('select from ops.feed_position for update');
      const epoch = await beginEpochFor(tx, taken);
      const statement = await checkpointWith(tx, secrets, {
        ...{ workspaceId: taken.workspaceId, epoch, size: taken.size, root: taken.root, now: taken.now },
        more: [
          `from epoch ${taken.epoch} ${hash('sha256', taken.note, 'base64')}`,
          ...taken.verifiers.map((verifier) => `continues ${verifier}`),
        ],
      });
      await tx.query(
        `update ops.workspace_moves set position = $2, imported_at = now(), chain = $3 where workspace_id = $1`,
        [
          taken.workspaceId,
          taken.position,
          JSON.stringify([{ statement: statement.note, origin: taken.note }, ...taken.moves]),
        ],
      );
      return { commit: true, result: undefined };
    },
    'begin',
  );
};

const beginEpochFor = async (tx: PoolClient, { workspaceId, epoch, size }: TakenOver): Promise<number> => {
  const { rows } = await tx.query<{ readonly epoch: number }>(
    `insert into ops.feed_epochs (epoch) select greatest(max(epoch), $1::int4) + 1 from ops.feed_epochs returning epoch`,
    [epoch],
  );
  const begun = rows[0]?.epoch ?? epoch + 1;
  await tx.query(
    `insert into ops.feed_kept (workspace_id, epoch, sequence)
     select workspace_id, $1::int4, size from ops.feed_heads where workspace_id <> $2::uuid
     union all select $2::uuid, $1::int4, $3::int8`,
    [begun, workspaceId, size],
  );
  return begun;
};
