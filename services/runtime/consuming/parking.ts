import type { Pool, PoolClient } from 'pg';
import type { StoredBytes } from '#runtime/eventing/codec.ts';
import { wellFormedText } from '#runtime/eventing/well-formed.ts';

/**
 * Events that a consumer group has set aside: one that it cannot apply, and all later ones of its stream, to keep their
 * order. They wait for an operator, who retries them or skips the first one; the consumer itself retries events that
 * were only too slow. The transaction that moves the position writes the rows, and the transaction that applies the
 * events deletes them. So after any crash each event is in exactly one place.
 *
 * A stream may have hundreds of thousands of parked events. No automatic statement may read or write more than a few
 * rows of a stream, because the lanes of the group would stand still during the statement.
 */

/** Why a later event of a parked stream waits. */
export const behindReason = 'an earlier event of its stream is parked';

/** Rows that were parked for a reason of their own. The planner uses their index only if a query repeats this text. */
const isBlamed = `reason <> '${behindReason}'`;

/** Streams that a group may park within a minute. More bad streams have a common cause, so the group stops. */
export const maxParkedStreams = 10;

export class TooManyParked extends Error {
  constructor(group: string) {
    super(
      `more than ${maxParkedStreams} streams of ${group} would be parked within a minute: mend what fails them all`,
    );
    this.name = 'TooManyParked';
  }
}

/**
 * Milliseconds after which the consumer retries an event parked only for time-outs, because an overloaded database is
 * too slow for any event. Each later try is due after four times the time, so after 1, 4 and 16 minutes; after a try
 * that was due later than `maxDoubt` times the first, the event waits for an operator.
 */
export const doubtMs = 60_000;
export const maxDoubt = 10;

/** Event id → the decision about the event and its reason. `doubtful`: the event only timed out and may be good. */
export type Judged = ReadonlyMap<
  string,
  { readonly action: string; readonly reason: string; readonly doubtful?: boolean }
>;

const text = new TextDecoder();
const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Null: the metadata has no workspace, so no answer of the API shows the event. */
const workspaceOf = (metadata: Uint8Array): string | null => {
  try {
    const { workspaceId } = JSON.parse(text.decode(metadata)) as { readonly workspaceId?: unknown };
    return typeof workspaceId === 'string' && uuid.test(workspaceId) ? workspaceId : null;
  } catch {
    return null;
  }
};

/** Longest reason stored, because a database error may quote a whole row. */
const longestReason = 500;
export const reasonOf = (error: unknown): string =>
  wellFormedText(error instanceof Error ? error.message : String(error), longestReason);

/** The first parked event of each of these streams: one index step for each, however many events wait. */
const firstsAmongSql = `
select asked.stream, first.revision from unnest($2::text[]) as asked(stream) cross join lateral (
  select revision from ops.parked_events
  where consumer_group = $1 and stream = asked.stream order by revision limit 1) as first`;
const skippedSql = `
select s.event_id::text as id from unnest($2::text[], $3::int8[]) as judged(stream, revision)
join ops.skipped_events s on s.consumer_group = $1 and s.stream = judged.stream and s.revision = judged.revision`;
const parkSql = `
insert into ops.parked_events
  (consumer_group, stream, revision, event_id, type, position, reason, workspace_id, retry_at, parked_at)
select $1, stream, revision, event_id, type, position, reason, workspace_id,
  now() + doubt_ms * interval '1 millisecond',
  now() - case when stream = any($10::text[]) then interval '1 minute' else interval '0' end
from unnest($2::text[], $3::int8[], $4::uuid[], $5::text[], $6::int8[], $7::text[], $8::uuid[], $9::float8[])
  as asked(stream, revision, event_id, type, position, reason, workspace_id, doubt_ms)
on conflict do nothing`;
const lateSql = `
select count(distinct stream)::int as streams from ops.parked_events
where consumer_group = $1 and parked_at > now() - interval '1 minute' and ${isBlamed}`;

export interface SetAside {
  /** Ids of events that must not be applied: parked now or before, or skipped. */
  readonly ids: ReadonlySet<string>;
  /** Streams of the records that are parked. */
  readonly streams: ReadonlySet<string>;
}

const skippedAmong = async (
  tx: PoolClient,
  group: string,
  records: readonly StoredBytes[],
  judged: Judged,
): Promise<Set<string>> => {
  const asked = records.filter(({ id }) => judged.has(id));
  if (asked.length === 0) return new Set();
  const { rows } = await tx.query<{ id: string }>(skippedSql, [
    group,
    asked.map(({ stream }) => stream),
    asked.map(({ revision }) => revision),
  ]);
  return new Set(rows.map(({ id }) => id));
};

/**
 * Parks what was judged so, and every later event of a stream that has one parked. The log may repeat an event that an
 * operator had skipped: it stays left out. @param known streams that are no news: they do not count against the limit,
 * now or in the next minute
 * @throws TooManyParked
 */
export const setAside = async (
  tx: PoolClient,
  group: string,
  records: readonly StoredBytes[],
  judged: Judged,
  {
    known = [],
    doubtMs: restMs = doubtMs,
  }: { readonly known?: readonly string[]; readonly doubtMs?: number | undefined } = {},
): Promise<SetAside> => {
  const found = await tx.query(firstsAmongSql, [group, [...new Set(records.map((one) => one.stream))]]);
  const firsts = new Map<string, bigint>(found.rows.map((row) => [row.stream, BigInt(row.revision)]));
  const before = firsts.size;
  const ids = await skippedAmong(tx, group, records, judged);
  const parked: { readonly record: StoredBytes; readonly reason: string; readonly doubtMs: number | null }[] = [];
  for (const record of records) {
    const { id, stream, revision } = record;
    if (ids.has(id)) continue;
    const judgement = judged.get(id);
    const first = firsts.get(stream);
    if (judgement?.action === 'skip') {
      ids.add(id);
      continue;
    }
    if (judgement === undefined && (first === undefined || revision < first)) continue;
    if (first === undefined) firsts.set(stream, revision);
    ids.add(id);
    parked.push({
      record,
      doubtMs: first === undefined && judgement?.doubtful === true ? restMs : null,
      reason: judgement === undefined ? behindReason : wellFormedText(judgement.reason, longestReason),
    });
  }
  if (parked.length > 0) {
    await tx.query(parkSql, [
      group,
      parked.map(({ record }) => record.stream),
      parked.map(({ record }) => record.revision),
      parked.map(({ record }) => record.id),
      parked.map(({ record }) => record.type),
      parked.map(({ record }) => record.position),
      parked.map(({ reason }) => reason),
      parked.map(({ record }) => workspaceOf(record.metadata)),
      parked.map((one) => one.doubtMs),
      known,
    ]);
  }
  if (firsts.size > before) {
    const { rows } = await tx.query(lateSql, [group]);
    if (rows[0].streams > maxParkedStreams) throw new TooManyParked(group);
  }
  return { ids, streams: new Set(firsts.keys()) };
};

/**
 * The first parked event of each stream of some groups, as the table `firsts`: one step in the index for each stream.
 * @param groups SQL that yields the names of the groups
 * @param most streams of a group
 */
export const withFirsts = (groups: string, most = 2_147_483_646): string => `
with recursive firsts as (
  select first.*, 1 as place from (${groups}) as own(name) cross join lateral (
    select * from ops.parked_events where consumer_group = own.name order by stream, revision limit 1) as first
  union all
  select next.*, firsts.place + 1 from firsts cross join lateral (
    select * from ops.parked_events e where e.consumer_group = firsts.consumer_group and e.stream > firsts.stream
    order by e.stream, e.revision limit 1) as next
  where firsts.place < ${most})`;

/** All parked streams: if one were missing, its later events would be applied before its parked ones. */
export const parkedStreams = async (pool: Pick<Pool, 'query'>, group: string): Promise<readonly string[]> => {
  const { rows } = await pool.query(`${withFirsts('select $1::text')} select stream from firsts`, [group]);
  return rows.map(({ stream }) => stream);
};

/** Streams with parked or skipped events of a group; a new generation of its tables meets the same bad events. */
export const troubledStreams = async (pool: Pool, group: string): Promise<readonly string[]> => {
  const { rows } = await pool.query(
    `${withFirsts('select $1::text')} select stream from firsts
     union select stream from ops.skipped_events where consumer_group = $1`,
    [group],
  );
  return rows.map(({ stream }) => stream);
};

/** Deletes the parked and skipped events of a group, as when its tables are rebuilt. */
export const forgetParked = async (tx: PoolClient, group: string): Promise<void> => {
  await tx.query('delete from ops.parked_events where consumer_group = $1', [group]);
  await tx.query('delete from ops.skipped_events where consumer_group = $1', [group]);
};

/** Revisions of a stream that an operator skipped. */
export const skippedRevisions = async (tx: PoolClient, group: string, stream: string): Promise<ReadonlySet<number>> => {
  const { rows } = await tx.query<{ revision: string }>(
    'select revision from ops.skipped_events where consumer_group = $1 and stream = $2',
    [group, stream],
  );
  return new Set(rows.map(({ revision }) => Number(revision)));
};

/** Whether every revision between two revisions was skipped. */
export const isBridged = (after: number, before: number, skipped: ReadonlySet<number>): boolean => {
  for (let revision = after + 1; revision < before; revision += 1) if (!skipped.has(revision)) return false;
  return true;
};
