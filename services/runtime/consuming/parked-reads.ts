import type { Pool } from 'pg';
import { withFirsts } from './parking.ts';

/** Reads parked events for operators, /metrics and /readyz. */

/** Most streams of a group, and most events of a stream, that a query counts or lists; a person needs no more. */
export const maxListed = 10_000;

export interface ParkedStream {
  readonly group: string;
  readonly stream: string;
  readonly workspaceId: string | null;
  /** How many wait; counted no further than `maxListed`. */
  readonly events: number;
  /** The first parked event, which cannot be applied. */
  readonly eventId: string;
  readonly revision: string;
  readonly type: string;
  readonly reason: string;
  readonly since: Date;
  /** When the consumer retries the event; null: the event waits for an operator. */
  readonly retryAt: Date | null;
}

const groupsSql = `
with recursive known as (
  (select consumer_group as name from ops.parked_events order by 1 limit 1)
  union all
  select (select e.consumer_group from ops.parked_events e where e.consumer_group > known.name order by 1 limit 1)
  from known where known.name is not null)
select name from known where name is not null`;

export const parkedGroups = async (pool: Pool): Promise<readonly string[]> =>
  (await pool.query<{ name: string }>(groupsSql)).rows.map(({ name }) => name);

const listSql = `
${withFirsts(`select name from (${groupsSql}) as all_groups where $1::text is null or name = $1`, maxListed)},
listed as (
  select * from firsts where $2::text is null or stream = $2 order by parked_at, consumer_group, stream limit 1000)
select
  consumer_group as "group", stream, workspace_id::text as "workspaceId", behind.events, event_id::text as "eventId",
  revision::text, type, reason, parked_at as since, retry_at as "retryAt"
from listed cross join lateral (
  select count(*)::int as events from (
    select from ops.parked_events e where e.consumer_group = listed.consumer_group and e.stream = listed.stream
    limit ${maxListed}) as counted) as behind
order by parked_at, consumer_group, stream`;

/** Oldest first. @param group null = all @param stream null = all */
export const listParked = async (
  pool: Pool,
  group: string | null,
  stream: string | null = null,
): Promise<readonly ParkedStream[]> => (await pool.query<ParkedStream>(listSql, [group, stream])).rows;

/** Whether a retry is due that the consumer has not made yet. @param stream null = any */
export const isRetryPending = async (pool: Pool, group: string, stream: string | null): Promise<boolean> => {
  const { rowCount } = await pool.query(
    `select from ops.parked_events
     where consumer_group = $1 and retry_at <= now() and ($2::text is null or stream = $2) limit 1`,
    [group, stream],
  );
  return rowCount === 1;
};

/** Parked streams of these groups, and the age of the oldest in seconds. */
export const countParked = async (
  pool: Pool,
  groups: readonly string[],
): Promise<ReadonlyMap<string, { readonly streams: number; readonly oldest: number }>> => {
  const { rows } = await pool.query(
    `${withFirsts('select distinct unnest($1::text[])', maxListed)}
     select consumer_group as "group", count(*)::int as streams,
       extract(epoch from now() - min(parked_at))::float8 as oldest
     from firsts group by 1`,
    [groups],
  );
  return new Map(rows.map(({ group, streams, oldest }) => [group, { streams, oldest }]));
};
