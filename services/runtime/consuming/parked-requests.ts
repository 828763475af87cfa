import type { Pool, PoolClient } from 'pg';
import { behindReason, maxDoubt, withFirsts } from './parking.ts';

/**
 * What an operator wants to have done about parked events, and how the consumer goes about it. The consumer also has an
 * event tried again that was parked only for time-outs. When a stream is due stands in its first row and moves to the next
 * one in the transaction that applies the first: so asking takes one row however many wait, and a death in between loses
 * neither an event nor the request.
 */

/** Streams tried again in one look. */
export const streamsPerLook = 100;

export interface StreamToRetry {
  readonly stream: string;
  /** Where its parked events begin. */
  readonly first: bigint;
}

/** Some of the streams that are to be tried again by now, in order. @param after '' = from the first */
export const streamsToRetry = async (pool: Pool, group: string, after: string): Promise<readonly StreamToRetry[]> => {
  const { rows } = await pool.query(
    `select stream, revision from ops.parked_events
     where consumer_group = $1 and stream > $2 and retry_at <= now() order by stream, revision limit $3`,
    [group, after, streamsPerLook],
  );
  return rows.map((row) => ({ stream: row.stream, first: BigInt(row.revision) }));
};

/** A stream's parked events from there on, in order. */
export const parkedFrom = async (
  pool: Pool,
  group: string,
  { stream, first }: StreamToRetry,
  limit: number,
): Promise<readonly bigint[]> => {
  const { rows } = await pool.query(
    `select revision from ops.parked_events where consumer_group = $1 and stream = $2 and revision >= $3::int8
     order by revision limit $4`,
    [group, stream, first, limit],
  );
  return rows.map((row) => BigInt(row.revision));
};

/**
 * The first ones of a stream are parked no longer; who asked for them asked for what is behind them, too. False where
 * they are not all there: an operator had one skipped meanwhile.
 */
export const unpark = async (
  tx: PoolClient,
  group: string,
  stream: string,
  revisions: readonly bigint[],
): Promise<boolean> => {
  const { rows } = await tx.query<{ gone: number }>(
    `with gone as (
       delete from ops.parked_events where consumer_group = $1 and stream = $2 and revision = any($3::int8[])
       returning retry_at
     ), moved as (
       update ops.parked_events set retry_at = now()
       where consumer_group = $1 and stream = $2 and exists (select from gone where retry_at is not null)
         and revision = (
           select revision from ops.parked_events where consumer_group = $1 and stream = $2 and revision > $4::int8
           order by revision limit 1)
     )
     select count(*)::int as gone from gone`,
    [group, stream, revisions, revisions.at(-1)],
  );
  return rows[0]?.gone === revisions.length;
};

/** Why a stream that somebody wants to have tried again still waits for it. */
export const noteReason = async (pool: Pool, group: string, stream: string, reason: string): Promise<void> => {
  await pool.query(
    `update ops.parked_events set reason = $3
     where consumer_group = $1 and stream = $2 and retry_at is not null and reason <> $3`,
    [group, stream, reason],
  );
};

/**
 * It still cannot be applied, and waits for an operator again. One that was too slow is tried again first, also where it
 * only waited behind another until now. When it is due counts, not when it was tried: tries are late where many wait, or
 * where the database was away.
 */
export const keepParked = async (
  tx: Pick<PoolClient, 'query'>,
  group: string,
  stream: string,
  revision: bigint,
  reason: string,
  /** Of one that was too slow: `doubtMs`. Null: it was not. */
  restMs: number | null = null,
): Promise<void> => {
  await tx.query(
    `update ops.parked_events set reason = $4, retry_at = case
       when reason = '${behindReason}' then now() + $5::float8 * interval '1 millisecond'
       when retry_at - parked_at < ${maxDoubt} * $5::float8 * interval '1 millisecond'
       then greatest(now() + $5::float8 * interval '1 millisecond', parked_at + 4 * (retry_at - parked_at)) end
     where consumer_group = $1 and stream = $2 and revision = $3::int8`,
    [group, stream, revision, reason, restMs],
  );
};

/**
 * Consumers move or hold a lane's row first in each transaction: while all rows of the group are held, none of them parks
 * anything, or applies what was parked.
 */
const holdGroup = async (tx: PoolClient, group: string): Promise<void> => {
  await tx.query('select 1 from ops.consumer_positions where consumer_group = $1 order by lane for update', [group]);
};

const wantStreamSql = `
update ops.parked_events set retry_at = now()
where consumer_group = $1 and stream = $2 and revision = (
  select revision from ops.parked_events where consumer_group = $1 and stream = $2 order by revision limit 1)`;
const wantAllSql = `
${withFirsts('select $1::text')}
update ops.parked_events p set retry_at = now() from firsts f
where p.consumer_group = f.consumer_group and p.stream = f.stream and p.revision = f.revision`;

/** The consumer tries these again in the order of revisions. Null: all that the group has parked. Answers how many streams. */
export const requestRetry = async (tx: PoolClient, group: string, stream: string | null): Promise<number> => {
  await holdGroup(tx, group);
  const { rowCount } =
    stream === null ? await tx.query(wantAllSql, [group]) : await tx.query(wantStreamSql, [group, stream]);
  return rowCount ?? 0;
};

/**
 * Leaves out one event, the first that its stream has parked, and has those behind it tried again. Null where it is not
 * parked, or others before it are: the order of a stream is not broken by skipping.
 */
export const requestSkip = async (
  tx: PoolClient,
  group: string,
  eventId: string,
): Promise<{ readonly stream: string } | null> => {
  const first = await tx.query<{ stream: string; revision: string }>(
    `${withFirsts('select $1::text')} select stream, revision::text from firsts where event_id = $2 limit 1`,
    [group, eventId],
  );
  const [found] = first.rows;
  if (found === undefined) return null;
  await holdGroup(tx, group);
  const { rows } = await tx.query<{ stream: string }>(
    `with gone as (
       delete from ops.parked_events p
       where consumer_group = $1 and stream = $2 and revision = $3::int8 and event_id = $4 and not exists (
         select from ops.parked_events e where e.consumer_group = $1 and e.stream = $2 and e.revision < $3::int8)
       returning stream, revision, event_id, type, reason
     )
     insert into ops.skipped_events (consumer_group, stream, revision, event_id, type, reason)
     select $1, stream, revision, event_id, type, reason from gone
     on conflict (consumer_group, stream, revision) do update set skipped_at = now()
     returning stream`,
    [group, found.stream, found.revision, eventId],
  );
  const [skipped] = rows;
  if (skipped === undefined) return null;
  await tx.query(wantStreamSql, [group, skipped.stream]);
  return skipped;
};
