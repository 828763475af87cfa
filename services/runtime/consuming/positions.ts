import type { Pool, PoolClient } from 'pg';
import type { Lane, LanePosition } from '#contracts/ports/log.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { eventAt, type idsOf } from './same-history.ts';

/** The position and owner of each lane of a group. The transactions of effects move these rows. */

/** How far a lane has been read: the log's next offset and the store's position. */
export interface Reached {
  readonly nextOffset: bigint | null;
  readonly position: bigint | null;
}

/** The arguments of `ops.consume_move`, in this order. */
export interface Move {
  readonly group: string;
  readonly lane: Lane;
  readonly epoch: string;
  readonly nextOffset: bigint | null;
  readonly position: bigint | null;
  /** Id of the event at the position; null: the batch did not have it. */
  readonly eventId: string | null;
}

/** SQLSTATE that a statement raises when `ops.consume_move` returns false. */
export const notMoved = 'CM001';

export class NotMoved extends Error {}

/** This member no longer owns the lane. The log ends its hold. */
export class Fenced extends Error {
  readonly code = 'fenced';
  constructor(group: string, lane: Lane) {
    super(`${group} on ${lane} belongs to another member`);
    this.name = 'Fenced';
  }
}

/** Raises the epoch of a group's lanes, so that their owners can no longer write. */
export const fence = async (tx: PoolClient, group: string): Promise<void> => {
  await tx.query('update ops.consumer_positions set epoch = epoch + 1 where consumer_group = $1', [group]);
};

/** Fences the owner's own earlier tries. `undone`: no try moved the position. `lost`: another member owns the lane. */
export const fenceTries = async (
  pool: Pool,
  group: string,
  lane: Lane,
  epoch: string,
  { nextOffset, position }: Reached,
): Promise<{ readonly epoch: string; readonly undone: boolean } | 'lost'> =>
  inTransaction(pool, async (tx) => {
    const { rows } = await tx.query<{ epoch: string; undone: boolean }>(
      `update ops.consumer_positions set epoch = epoch + 1
       where consumer_group = $1 and lane = $2 and epoch = $3::int8
       returning epoch::text, (next_offset, position) is distinct from ($4::int8, $5::int8) as undone`,
      [group, lane, epoch, nextOffset, position],
    );
    return { commit: true, result: rows[0] ?? 'lost' };
  });

/** The row of a taken lane, as Postgres returns it. */
export interface TakenLane {
  readonly lane: Lane;
  readonly next_offset: string | null;
  readonly position: string | null;
  readonly epoch: string;
  /** Null: the event at the position is unknown. */
  readonly event_id: string | null;
}

/** Makes a member the owner of lanes, so that their former owners can no longer write. */
export const takeLanes = async (pool: Pool, group: string, lanes: readonly Lane[]): Promise<readonly TakenLane[]> => {
  const result = await pool.query<TakenLane>(
    `insert into ops.consumer_positions (consumer_group, lane, epoch)
     select $1, lane, 1 from unnest($2::text[]) as lane order by lane
     on conflict (consumer_group, lane) do update set epoch = consumer_positions.epoch + 1
     returning lane, next_offset, position, epoch,
       case when event_position = position then event_id end as event_id`,
    [group, lanes],
  );
  return result.rows;
};

export const asPosition = (row: TakenLane): LanePosition => ({
  lane: row.lane,
  nextOffset: row.next_offset === null ? null : BigInt(row.next_offset),
  position: row.position === null ? null : BigInt(row.position),
});

/** A member's state of a lane that it owns. */
export interface Owned {
  epoch: string;
  /** Positions and ids of the events in the running batch. */
  ids: ReturnType<typeof idsOf>;
}

/**
 * Checks the owner after a position did not move: an earlier commit moved it, and its answer was lost. @throws Fenced
 */
export const requireOwn = async (
  db: Pick<PoolClient, 'query'>,
  group: string,
  lane: Lane,
  { epoch }: Owned,
  lock = '',
): Promise<void> => {
  const { rowCount } = await db.query(
    `select 1 from ops.consumer_positions where consumer_group = $1 and lane = $2 and epoch = $3::int8 ${lock}`,
    [group, lane, epoch],
  );
  if (rowCount === 0) throw new Fenced(group, lane);
};

/** False: the lane already has this position. @throws Fenced */
export const movePosition = async (
  tx: Pick<PoolClient, 'query'>,
  group: string,
  lane: Lane,
  owned: Owned,
  nextOffset: bigint | null,
  position: bigint | null,
): Promise<boolean> => {
  const { rows } = await tx.query<{ moved: boolean }>({
    name: 'consume-move',
    text: 'select ops.consume_move($1, $2, $3::int8, $4::int8, $5::int8, $6::uuid) as moved',
    values: [group, lane, owned.epoch, nextOffset, position, eventAt(owned.ids, position)],
  });
  if (rows[0]?.moved === true) return true;
  await requireOwn(tx, group, lane, owned);
  return false;
};
