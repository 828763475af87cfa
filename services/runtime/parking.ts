import type { Pool, PoolClient } from 'pg';
import type { StoredBytes } from './codec.ts';
import { wellFormedText } from './well-formed.ts';

/**
 * Events that a consumer group set aside: one that it cannot apply, and all later ones of its stream, whose order would
 * be broken. They wait for an operator, who has them tried again or the first one skipped. The rows are written by the
 * transaction that moves the position, and go with the one that applies them: whoever dies, each event is in one place.
 */

export const migrateParking = async (tx: PoolClient): Promise<void> => {
  await tx.query(`
    create table if not exists ops.parked_events (
      consumer_group text not null,
      stream text not null,
      revision int8 not null,
      event_id uuid not null,
      type text not null,
      position int8 not null,
      reason text not null,
      parked_at timestamptz not null default now(),
      primary key (consumer_group, stream, revision)
    );
    alter table ops.parked_events add column if not exists workspace_id uuid;
    alter table ops.parked_events add column if not exists retry_at timestamptz;
    create index if not exists parked_events_retry on ops.parked_events (consumer_group) where retry_at is not null;
    create table if not exists ops.skipped_events (
      consumer_group text not null,
      stream text not null,
      revision int8 not null,
      event_id uuid not null,
      type text not null,
      reason text not null,
      skipped_at timestamptz not null default now(),
      primary key (consumer_group, stream, revision)
    )`);
};

/** Why a later event of a parked stream waits. */
export const behindReason = 'an earlier event of its stream is parked';

/** Streams that a group may park within a minute. More than that is no bad event: the group stops. */
export const maxParkedStreams = 10;

export class TooManyParked extends Error {
  constructor(group: string) {
    super(
      `more than ${maxParkedStreams} streams of ${group} would be parked within a minute: mend what fails them all`,
    );
    this.name = 'TooManyParked';
  }
}

/** What was decided about an event: why it is parked, or null where it is left out. */
export type Judged = ReadonlyMap<string, { readonly action: string; readonly reason: string }>;

const text = new TextDecoder();
const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Null where the metadata does not tell: then no answer of the api speaks of it. */
const workspaceOf = (metadata: Uint8Array): string | null => {
  try {
    const { workspaceId } = JSON.parse(text.decode(metadata)) as { readonly workspaceId?: unknown };
    return typeof workspaceId === 'string' && uuid.test(workspaceId) ? workspaceId : null;
  } catch {
    return null;
  }
};

/** Longest reason kept: a database may quote a whole row. */
const longestReason = 500;
export const reasonOf = (error: unknown): string =>
  wellFormedText(error instanceof Error ? error.message : String(error), longestReason);

const firstsSql = `
select stream, min(revision) as revision from ops.parked_events
where consumer_group = $1 and stream = any($2::text[]) group by stream`;
const skippedSql = `
select event_id::text as id from ops.skipped_events where consumer_group = $1 and event_id = any($2::uuid[])`;
const parkSql = `
insert into ops.parked_events (consumer_group, stream, revision, event_id, type, position, reason, workspace_id)
values ($1, $2, $3::int8, $4, $5, $6::int8, $7, $8) on conflict do nothing`;
const lateSql = `
select count(*)::int as streams from (
  select from ops.parked_events where consumer_group = $1
  group by stream having min(parked_at) > now() - interval '1 minute') as late`;

export interface SetAside {
  /** Ids of events that are not to be applied: parked now or before, or skipped. */
  readonly ids: ReadonlySet<string>;
  /** Streams of the records that are parked. */
  readonly streams: ReadonlySet<string>;
}

/**
 * Parks what was judged so, and every later event of a stream that has one parked. The log may repeat an event that an
 * operator had skipped: it stays left out. @throws TooManyParked
 */
export const setAside = async (
  tx: PoolClient,
  group: string,
  records: readonly StoredBytes[],
  judged: Judged,
): Promise<SetAside> => {
  const known = await tx.query(firstsSql, [group, [...new Set(records.map((one) => one.stream))]]);
  const firsts = new Map<string, bigint>(known.rows.map((row) => [row.stream, BigInt(row.revision)]));
  const before = firsts.size;
  const skipped = await tx.query(skippedSql, [group, [...judged.keys()]]);
  const ids = new Set<string>(skipped.rows.map(({ id }) => id));
  for (const { id, stream, revision, type, position, metadata } of records) {
    if (ids.has(id)) continue;
    const verdict = judged.get(id);
    const first = firsts.get(stream);
    if (verdict?.action === 'skip') {
      ids.add(id);
      continue;
    }
    if (verdict === undefined && (first === undefined || revision < first)) continue;
    if (first === undefined) firsts.set(stream, revision);
    ids.add(id);
    const reason = verdict === undefined ? behindReason : wellFormedText(verdict.reason, longestReason);
    await tx.query(parkSql, [group, stream, revision, id, type, position, reason, workspaceOf(metadata)]);
  }
  if (firsts.size > before) {
    const { rows } = await tx.query(lateSql, [group]);
    if (rows[0].streams > maxParkedStreams) throw new TooManyParked(group);
  }
  return { ids, streams: new Set(firsts.keys()) };
};

export const parkedStreams = async (pool: Pick<Pool, 'query'>, group: string): Promise<readonly string[]> => {
  const { rows } = await pool.query('select distinct stream from ops.parked_events where consumer_group = $1', [group]);
  return rows.map(({ stream }) => stream);
};

/** Streams that somebody wants to have tried again, and where each begins. */
export const wantedAgain = async (
  pool: Pool,
  group: string,
): Promise<readonly { readonly stream: string; readonly first: bigint }[]> => {
  const { rows } = await pool.query(
    `select stream, min(revision) as first from ops.parked_events p
     where consumer_group = $1 and exists (
       select from ops.parked_events r where r.consumer_group = $1 and r.stream = p.stream and r.retry_at is not null)
     group by stream order by stream limit 100`,
    [group],
  );
  return rows.map((row) => ({ stream: row.stream, first: BigInt(row.first) }));
};

/** The first of a stream's parked events, in order. */
export const parkedOf = async (
  pool: Pool,
  group: string,
  stream: string,
  limit: number,
): Promise<readonly bigint[]> => {
  const { rows } = await pool.query(
    'select revision from ops.parked_events where consumer_group = $1 and stream = $2 order by revision limit $3',
    [group, stream, limit],
  );
  return rows.map((row) => BigInt(row.revision));
};

export const unpark = async (
  tx: PoolClient,
  group: string,
  stream: string,
  revisions: readonly bigint[],
): Promise<void> => {
  await tx.query(
    'delete from ops.parked_events where consumer_group = $1 and stream = $2 and revision = any($3::int8[])',
    [group, stream, revisions],
  );
};

/** It still cannot be applied, and waits for an operator again. */
export const parkAgain = async (
  tx: Pick<PoolClient, 'query'>,
  group: string,
  stream: string,
  revision: bigint,
  reason: string,
): Promise<void> => {
  await tx.query(
    `update ops.parked_events set retry_at = null, reason = case when revision = $3::int8 then $4 else reason end
     where consumer_group = $1 and stream = $2`,
    [group, stream, revision, reason],
  );
};

/** What a group has set aside goes with it, as when its tables were made anew. */
export const forgetParked = async (tx: PoolClient, group: string): Promise<void> => {
  await tx.query('delete from ops.parked_events where consumer_group = $1', [group]);
  await tx.query('delete from ops.skipped_events where consumer_group = $1', [group]);
};

/** Revisions of a stream that an operator had left out. */
export const skippedRevisions = async (tx: PoolClient, group: string, stream: string): Promise<ReadonlySet<number>> => {
  const { rows } = await tx.query<{ revision: string }>(
    'select revision from ops.skipped_events where consumer_group = $1 and stream = $2',
    [group, stream],
  );
  return new Set(rows.map(({ revision }) => Number(revision)));
};

/** Whether all between two revisions were left out. */
export const isBridged = (after: number, before: number, skipped: ReadonlySet<number>): boolean => {
  for (let revision = after + 1; revision < before; revision += 1) if (!skipped.has(revision)) return false;
  return true;
};

/** Consumers move a lane's row first in each transaction: while all rows of the group are held, none of them parks anything. */
const holdGroup = async (tx: PoolClient, group: string): Promise<void> => {
  await tx.query('select 1 from ops.consumer_positions where consumer_group = $1 order by lane for update', [group]);
};

/** The consumer tries these again in the order of revisions. Null: all that the group has parked. Answers how many. */
export const requestRetry = async (tx: PoolClient, group: string, stream: string | null): Promise<number> => {
  await holdGroup(tx, group);
  const { rowCount } = await tx.query(
    `update ops.parked_events set retry_at = now()
     where consumer_group = $1 and ($2::text is null or stream = $2)`,
    [group, stream],
  );
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
  await holdGroup(tx, group);
  const { rows } = await tx.query<{ stream: string }>(
    `with gone as (
       delete from ops.parked_events p where consumer_group = $1 and event_id = $2 and not exists (
         select from ops.parked_events e
         where e.consumer_group = $1 and e.stream = p.stream and e.revision < p.revision)
       returning stream, revision, event_id, type, reason
     )
     insert into ops.skipped_events (consumer_group, stream, revision, event_id, type, reason)
     select $1, stream, revision, event_id, type, reason from gone
     on conflict (consumer_group, stream, revision) do update set skipped_at = now()
     returning stream`,
    [group, eventId],
  );
  const [skipped] = rows;
  if (skipped === undefined) return null;
  await requestRetry(tx, group, skipped.stream);
  return skipped;
};

export interface ParkedStream {
  readonly group: string;
  readonly stream: string;
  readonly workspaceId: string | null;
  readonly events: number;
  /** The first of them: the one that cannot be applied. */
  readonly eventId: string;
  readonly revision: string;
  readonly type: string;
  readonly reason: string;
  readonly since: Date;
  /** Whether somebody wants to have it tried again. */
  readonly wanted: boolean;
}

const listSql = `
select
  consumer_group as "group", stream, workspace_id::text as "workspaceId", events, event_id::text as "eventId",
  revision::text, type, reason, parked_at_first as since, wanted
from (
  select *, count(*) over own as events, min(parked_at) over own as parked_at_first,
    bool_or(retry_at is not null) over own as wanted, row_number() over (own order by revision) as place
  from ops.parked_events where $1::text is null or consumer_group = $1
  window own as (partition by consumer_group, stream)) as parked
where place = 1
order by parked_at_first, consumer_group, stream limit 1000`;

/** Oldest first. @param group null = all */
export const listParked = async (pool: Pool, group: string | null): Promise<readonly ParkedStream[]> => {
  const { rows } = await pool.query(listSql, [group]);
  return rows.map((row) => ({ ...row, events: Number(row.events) }));
};

/** Streams that these groups have parked, and for how long the oldest has been so, seconds. */
export const countParked = async (
  pool: Pool,
  groups: readonly string[],
): Promise<ReadonlyMap<string, { readonly streams: number; readonly oldest: number }>> => {
  const { rows } = await pool.query(
    `select consumer_group as "group", count(distinct stream)::int as streams,
       extract(epoch from now() - min(parked_at))::float8 as oldest
     from ops.parked_events where consumer_group = any($1::text[]) group by 1`,
    [groups],
  );
  return new Map(rows.map(({ group, streams, oldest }) => [group, { streams, oldest }]));
};
