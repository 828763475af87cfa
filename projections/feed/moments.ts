import type { Pool } from 'pg';
import { type FeedEnd, feedEnd, keptOf } from './read.ts';

/** Moments of a feed: an event of it, whose place in the store cuts every stream of the workspace. */

export interface FeedMoment {
  /** The newest epoch, which its number is of. */
  readonly epoch: number;
  readonly sequence: number;
  /** Of that event in the store. */
  readonly position: bigint;
  /** ISO 8601: when the store took it, or the instant that was asked for. */
  readonly at: string;
}

type Queries = Pick<Pool, 'query'>;

interface Place {
  readonly epoch: number;
  readonly sequence: string;
  readonly position: string;
  readonly at: Date;
}

/** An event as somebody names it. `epoch` null: the newest. */
interface NamedEvent {
  readonly epoch: number | null;
  readonly sequence: number;
}

/** What `asOf` of a query or `--at` of a command names: an event of an epoch, or null for an instant. */
export const namedEvent = (text: string): NamedEvent | null => {
  const [, epoch, sequence] = /^(?:(\d+)\.)?(\d+)$/.exec(text) ?? [];
  if (sequence === undefined) return null;
  return { epoch: epoch === undefined ? null : Number(epoch), sequence: Number(sequence) };
};

/** Null: the feed has no such event. */
const momentOfSequence = async (pool: Queries, workspaceId: string, sequence: number): Promise<FeedMoment | null> => {
  const { rows } = await pool.query<Place>({
    name: 'moment-of-sequence',
    text: `select (select max(epoch) from ops.feed_epochs) as epoch, sequence, position, at
      from ops.feed_events where workspace_id = $1 and sequence = $2`,
    values: [workspaceId, sequence],
  });
  const [row] = rows;
  if (row === undefined) return null;
  return { epoch: row.epoch, sequence, position: BigInt(row.position), at: row.at.toISOString() };
};

/** An event that the feed does not have, and why. */
export interface NoMoment {
  readonly wrong: string;
  readonly code: 'too_small' | 'too_large' | 'out_of_range';
}

/** Null: the numbers are being changed by a restore. */
export const momentOfNamed = async (
  pool: Queries,
  workspaceId: string,
  { epoch, sequence }: NamedEvent,
): Promise<FeedMoment | NoMoment | null> => {
  const end: FeedEnd = await feedEnd(pool, workspaceId);
  if (sequence < 1) return { code: 'too_small', wrong: beforeFirst };
  if (epoch !== null && epoch > end.epoch) {
    return { code: 'too_large', wrong: `names no epoch: the newest is ${end.epoch}` };
  }
  const kept = epoch === null || epoch === end.epoch ? null : await keptOf(pool, workspaceId, epoch);
  if (kept !== null && sequence > kept) {
    const wrong = `names an event that a restore took back: of epoch ${epoch} the events up to ${kept} were kept`;
    return { code: 'out_of_range', wrong };
  }
  if (sequence > end.size) {
    return { code: 'too_large', wrong: `lies behind the end of the feed, which is ${end.epoch}.${end.size}` };
  }
  return momentOfSequence(pool, workspaceId, sequence);
};

export const beforeFirst = 'lies before the first event of the workspace';

/**
 * `at` never falls along the sequence, so that halving finds the last event that is not later: some 25 reads of the
 * primary key, and no index by time.
 */
const byInstantSql = `
with recursive search (low, high) as (
  select 0::int8, coalesce((select size from ops.feed_heads where workspace_id = $1), 0)
  union all
  select case when e.at <= $2::timestamptz then e.sequence else s.low end,
    case when e.at <= $2::timestamptz then s.high else e.sequence - 1 end
  from search s join ops.feed_events e on e.workspace_id = $1 and e.sequence = (s.low + s.high + 1) / 2
  where s.low < s.high
)
select (select max(epoch) from ops.feed_epochs) as epoch, f.sequence, f.position, h.size > s.low as "isFollowed",
  extract(epoch from $2::timestamptz - clock_timestamp())::float8 * 1000 as "aheadMs"
from search s left join ops.feed_events f on f.workspace_id = $1 and f.sequence = s.low
left join ops.feed_heads h on h.workspace_id = $1
where s.low = s.high`;

export interface MomentByInstant {
  /** Null: nothing had happened. */
  readonly moment: FeedMoment | null;
  /** A later event has a number: nothing that comes can lie before the instant any more. */
  readonly isFollowed: boolean;
  /** How far the instant lies ahead of the database's clock, milliseconds; negative: it has passed. */
  readonly aheadMs: number;
}

/** The last event that is not later than the instant. Null: the numbers are being changed by a restore. @param instant ISO 8601 */
export const momentOfInstant = async (
  pool: Queries,
  workspaceId: string,
  instant: string,
): Promise<MomentByInstant | null> => {
  const { rows } = await pool.query<Partial<Place> & { isFollowed: boolean | null; aheadMs: number }>({
    ...{ name: 'moment-of-instant', text: byInstantSql, values: [workspaceId, instant] },
  });
  const [row] = rows;
  if (row === undefined) return null;
  const { epoch = 1, sequence, position, isFollowed, aheadMs } = row;
  const at = new Date(instant).toISOString();
  const moment =
    sequence == null || position == null ? null : { epoch, sequence: Number(sequence), position: BigInt(position), at };
  return { moment, isFollowed: isFollowed === true, aheadMs };
};

/** Whether the feed has every event up to this position of the store; null: the store was empty. */
export const hasNumbered = async (pool: Queries, head: bigint | null): Promise<boolean> => {
  const { rows } = await pool.query<{ readonly is: boolean }>({
    name: 'feed-reached',
    text: 'select coalesce(position, -1) >= $1::int8 as is from ops.feed_position',
    values: [head ?? -1n],
  });
  return rows[0]?.is === true;
};
