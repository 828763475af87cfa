import type { Pool, PoolClient } from 'pg';
import { behindReason, maxDoubt, withFirsts } from './parking.ts';

/**
 * An operator's requests to retry or skip parked events, and the consumer's work on them. The consumer itself also
 * retries events parked only for time-outs. The first row of a stream holds its due time; the transaction that applies
 * the first row moves the time to the next one. So a request writes one row however many events wait, and a crash loses
 * neither an event nor the request.
 */

/** Streams retried in one search. */
export const streamsPerLook = 100;

export interface StreamToRetry {
  readonly stream: string;
  /** Revision of the stream's first parked event. */
  readonly first: bigint;
}

/** Some of the streams that are due for a retry, in order. @param after '' = from the first */
export const streamsToRetry = async (pool: Pool, group: string, after: string): Promise<readonly StreamToRetry[]> => {
  const { rows } = await pool.query(
    `select stream, revision from ops.parked_events
     where consumer_group = $1 and stream > $2 and retry_at <= now() order by stream, revision limit $3`,
    [group, after, streamsPerLook],
  );
  return rows.map((row) => ({ stream: row.stream, first: BigInt(row.revision) }));
};

/** Revisions of a stream's parked events from `first` on, in order. */
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
 * Unparks the first events of a stream; a request for them also covers the events behind them. False: some of them are
 * gone, because an operator skipped one meanwhile.
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

/** Records why a stream with a requested retry still waits. */
export const noteReason = async (pool: Pool, group: string, stream: string, reason: string): Promise<void> => {
  await pool.query(
    `update ops.parked_events set reason = $3
     where consumer_group = $1 and stream = $2 and retry_at is not null and reason <> $3`,
    [group, stream, reason],
  );
};

/**
 * Keeps an event parked that still cannot be applied; it waits for an operator. The consumer first retries an event
 * that was too slow, even one that waited behind another until now. The limit counts by due times and not by the times
 * of the tries, because tries are late when many streams wait or the database was unavailable.
 */
export const keepParked = async (
  tx: Pick<PoolClient, 'query'>,
  group: string,
  stream: string,
  revision: bigint,
  reason: string,
  /** `doubtMs` if the event was too slow; null: it was not. */
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
 * Locks all lanes of a group. Consumers lock their lane's row first in each transaction, so during the lock no consumer
 * parks events or applies parked ones.
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

/**
 * Requests a retry in the order of revisions. Null: all streams that the group has parked. Returns the number of
 * streams.
 */
export const requestRetry = async (tx: PoolClient, group: string, stream: string | null): Promise<number> => {
  await holdGroup(tx, group);
  const { rowCount } =
    stream === null ? await tx.query(wantAllSql, [group]) : await tx.query(wantStreamSql, [group, stream]);
  return rowCount ?? 0;
};

/**
 * Skips the first parked event of a stream and requests a retry of the events behind it. Null: the event is not parked,
 * or not the first; skipping must not break the order of a stream.
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
