import type { Pool, PoolClient } from 'pg';
import { type EventStore, EventStoreError } from '#contracts/ports/event-store.ts';
import { emptyFrontier, type Frontier, type Hash } from '#domain/tree.ts';
import { type LastEvent, requireSameHistory } from '#runtime/consuming/same-history.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { subtreesOf } from './tree.ts';

/**
 * Epochs of the feed. After a restore the store gives its next events numbers that others had before: those who hold a cursor
 * or a checkpoint of the time that was lost must learn it. So each restore begins an epoch, and the last number that every
 * workspace keeps is written down.
 */

export interface Reached {
  /** How far the store has been read; null: nothing has been. */
  readonly position: bigint | null;
  /** The declared restore after which the epoch began; null: none. */
  readonly restoredAt: Date | null;
}

interface Row {
  readonly position: string | null;
  readonly event_id: string | null;
  readonly began_with: Date | null;
  readonly declared: Date | null;
}

const stateSql = `
  select p.position, p.event_id, d.declared, (select max(restored_at) from ops.feed_epochs) as began_with
  from ops.feed_position p, (select max(restored_at) as declared from ops.restores) d`;

/** Begins an epoch where one is due, and answers from where the numbering goes on. */
export const beginEpoch = async (
  pool: Pool,
  store: Pick<EventStore, 'readAll' | 'head'>,
  logger: Pick<Logger, 'info' | 'warn'>,
): Promise<Reached> => {
  const { rows } = await pool.query<Row>(stateSql);
  const [{ position, event_id: eventId, began_with: beganWith, declared } = { position: null } as Row] = rows;
  const last = position === null || eventId === null ? null : { position: BigInt(position), eventId };
  const isLost = last !== null && !(await isThere(store, last));
  const isDeclared = declared !== null && (beganWith === null || declared > beganWith);
  if (!isLost && !isDeclared) return { position: last?.position ?? null, restoredAt: declared };
  const kept = isLost ? await lastKept(pool, store, last.position) : (last?.position ?? null);
  await writeEpoch(pool, kept, isLost, declared);
  logger.warn({ position: String(kept) }, 'a restore took events back: the feed begins an epoch');
  return { position: kept, restoredAt: declared };
};

const isThere = async (store: Pick<EventStore, 'readAll' | 'head'>, last: LastEvent): Promise<boolean> => {
  try {
    await requireSameHistory(store, 'the feed', last);
    return true;
  } catch (error) {
    if (error instanceof EventStoreError && error.code === 'invalid_position') return false;
    throw error;
  }
};

/** Events of all workspaces that one look back takes. */
const lookBack = 1_000;

/** The position of the newest numbered event that the store still has: a store that has an event has all before it. */
const lastKept = async (
  pool: Pool,
  store: Pick<EventStore, 'readAll' | 'head'>,
  from: bigint,
): Promise<bigint | null> => {
  let below = from + 1n;
  for (;;) {
    const { rows } = await pool.query<{ readonly position: string; readonly event_id: string }>(
      'select position, event_id from ops.feed_events where position < $1 order by position desc limit $2',
      [below, lookBack],
    );
    const found = rows.map(({ position, event_id: eventId }) => ({ position: BigInt(position), eventId }));
    const oldest = found.at(-1);
    if (oldest === undefined) return null;
    if (await isThere(store, oldest)) {
      let [kept, lost] = [found.length - 1, -1];
      while (kept - lost > 1) {
        const middle = (kept + lost) >> 1;
        if (await isThere(store, found[middle] as LastEvent)) kept = middle;
        else lost = middle;
      }
      return found[kept]?.position ?? null;
    }
    below = oldest.position;
  }
};

/** All or nothing: the numbers of lost events go, what each workspace keeps is noted, and the epoch begins. */
const writeEpoch = async (pool: Pool, kept: bigint | null, isLost: boolean, declared: Date | null): Promise<void> => {
  await inTransaction(
    pool,
    async (tx) => {
      await tx.query('select from ops.feed_position for update');
      if (isLost) await forget(tx, kept);
      const { rows } = await tx.query<{ readonly epoch: number }>(
        'insert into ops.feed_epochs (epoch, restored_at) select max(epoch) + 1, $1 from ops.feed_epochs returning epoch',
        [declared],
      );
      await tx.query(
        'insert into ops.feed_kept (workspace_id, epoch, sequence) select workspace_id, $1, size from ops.feed_heads',
        [rows[0]?.epoch],
      );
      return { commit: true, result: undefined };
    },
    'begin',
  );
};

const forget = async (tx: PoolClient, kept: bigint | null): Promise<void> => {
  const { rows: shortened } = await tx.query<{ readonly id: string; readonly size: string }>(
    `with gone as (delete from ops.feed_events where position > $1 returning workspace_id, sequence)
     select workspace_id as id, min(sequence) - 1 as size from gone group by workspace_id`,
    [kept ?? -1n],
  );
  for (const { id, size: text } of shortened) {
    const size = Number(text);
    await tx.query(
      'delete from ops.feed_subtrees where workspace_id = $1 and (index + 1) * (2::numeric ^ level) > $2',
      [id, size],
    );
    const { hashes } = await frontierAt(tx, id, size);
    await tx.query(
      `update ops.feed_heads set size = $2, frontier = $3, at = coalesce(
         (select at from ops.feed_events where workspace_id = $1 and sequence = $2), 'epoch') where workspace_id = $1`,
      [id, size, Buffer.concat(hashes)],
    );
  }
  await tx.query(
    `update ops.feed_position set position = $1,
       event_id = (select event_id from ops.feed_events where position = $1 limit 1)`,
    [kept],
  );
};

/** What the feed's frontier was when it had so many events. */
export const frontierAt = async (pool: Pick<Pool, 'query'>, workspaceId: string, size: number): Promise<Frontier> => {
  const subtrees = subtreesOf(pool, workspaceId);
  const hashes: Hash[] = [];
  let from = 0;
  for (let level = 52; level >= 0; level -= 1) {
    const leaves = 2 ** level;
    if (from + leaves > size) continue;
    hashes.push(await subtrees({ level, index: from / leaves }));
    from += leaves;
  }
  return size === 0 ? emptyFrontier : { size, hashes };
};
