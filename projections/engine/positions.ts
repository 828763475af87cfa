import { setTimeout as delay } from 'node:timers/promises';
import type { Pool, QueryConfig } from 'pg';
import type { LanePosition, Log } from '#contracts/ports/log.ts';
import { withFirsts } from '#runtime/consuming/parking.ts';
import type { Positions } from '#runtime/eventing/domain-store.ts';
import { topics as allTopics, type Topic } from '#schemas/topics.ts';
import { projections } from '../index.ts';
import { ownProjections } from '../shapes.ts';

/** How far the live generations have read, and waiting until they have applied the caller's own writes. */

/** A consumer that is no projection: it has one generation, under its own name. */
interface Group {
  readonly group: string;
  readonly topics: readonly Topic[];
}
/** The reader whose progress is awaited: a projection by its name, or another group. */
type Reader = string | Group;

/** The consumer that mints webhook deliveries. */
export const dispatcher: Group = { group: 'webhooks', topics: allTopics };

const keyOf = (reader: Reader): string => (typeof reader === 'string' ? reader : `group ${reader.group}`);

export const topicsOf = (reader: Reader): readonly string[] =>
  typeof reader === 'string' ? (projections.find((one) => one.name === reader)?.topics ?? []) : reader.topics;

/** The lanes of the generations that this build's views show. */
const liveLanes = `
  from ${ownProjections} p
  join ops.consumer_positions c on c.consumer_group = 'projection-' || p.name || '-v' || p.live`;

/** Reader (`keyOf`) → lane → commit position of the last record applied. */
type Progress = ReadonlyMap<string, ReadonlyMap<string, bigint>>;

const positionsOf = async (pool: Pool, readers: readonly Reader[]): Promise<Progress> => {
  const { rows } = await pool.query({
    name: 'projection-progress',
    text: `
      select p.name as reader, c.lane, c.position ${liveLanes}
      where p.name = any($1::text[]) and c.position is not null
      union all
      select 'group ' || c.consumer_group, c.lane, c.position from ops.consumer_positions c
      where c.consumer_group = any($2::text[]) and c.position is not null`,
    values: [
      readers.filter((one) => typeof one === 'string'),
      readers.flatMap((one) => (typeof one === 'string' ? [] : [one.group])),
    ],
  });
  const found = new Map<string, Map<string, bigint>>(readers.map((reader) => [keyOf(reader), new Map()]));
  for (const { reader, lane, position } of rows) found.get(reader)?.set(lane, BigInt(position));
  return found;
};

/**
 * The stamp changes whenever the live generation of the projection may show other rows: equal stamps mean equal rows.
 */
export const stampOf = async (pool: Pool, name: string): Promise<string> => {
  const { rows } = await pool.query({
    name: 'projection-stamp',
    text: `
      select string_agg(concat_ws('/', p.live, c.lane, c.position), ' ' order by c.lane) as stamp
      ${liveLanes}
      where p.name = $1`,
    values: [name],
  });
  return rows[0]?.stamp ?? '';
};

interface Waiter {
  readonly readers: readonly Reader[];
  readonly wanted: Positions;
  /** Resolves the wait and returns true when the readers have reached the wanted positions. */
  reached(progress: Progress): boolean;
  failed(error: unknown): void;
}

/** Milliseconds between two queries; all waiters share one query. */
const lookMs = 5;

const topicOfLane = (lane: string): string => lane.slice(0, lane.lastIndexOf('-'));

/** Whether the readers have applied every record up to these positions on the lanes of their topics. */
const hasReached = (log: Log, progress: Progress, readers: readonly Reader[], wanted: Positions): boolean =>
  readers.every((reader) => {
    const topics = topicsOf(reader);
    const lanes = progress.get(keyOf(reader));
    return [...wanted].every(([partition, position]) => {
      const topic = topicOfLane(partition);
      if (!topics.includes(topic)) return true;
      const lane = log.laneOf(topic, Number(partition.slice(topic.length + 1)));
      return (lanes?.get(lane) ?? -1n) >= position;
    });
  });

/** Serves many waiters with one query at a time. */
export class PositionWatch {
  readonly #pool: Pool;
  readonly #log: Log;
  readonly #waiters = new Set<Waiter>();
  #looking = false;

  constructor(pool: Pool, log: Log) {
    this.#pool = pool;
    this.#log = log;
  }

  /**
   * True once the readers have applied everything at or before these positions (`topic-partition` → commit
   * position; topics they do not read count as reached), false after `timeoutMs`. Rejects when the signal aborts or the
   * database does not answer.
   */
  async waitFor(
    readers: readonly Reader[],
    wanted: Positions,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<boolean> {
    if (hasReached(this.#log, new Map(), readers, wanted)) return true;
    signal?.throwIfAborted();
    return new Promise<boolean>((resolve, reject) => {
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        this.#waiters.delete(waiter);
        settle();
      };
      const abort = (): void => end(() => reject(signal?.reason));
      const timer = setTimeout(() => end(() => resolve(false)), timeoutMs);
      const waiter: Waiter = {
        readers,
        wanted,
        reached: (progress) => {
          if (!hasReached(this.#log, progress, readers, wanted)) return false;
          end(() => resolve(true));
          return true;
        },
        failed: (error) => end(() => reject(error)),
      };
      signal?.addEventListener('abort', abort, { once: true });
      this.#waiters.add(waiter);
      if (!this.#looking) void this.#look();
    });
  }

  async #look(): Promise<void> {
    this.#looking = true;
    try {
      while (this.#waiters.size > 0) {
        // The result of a query may be too old for a waiter that joined after the query began.
        const asking = [...this.#waiters];
        try {
          const readers = new Map(asking.flatMap((one) => one.readers.map((reader) => [keyOf(reader), reader])));
          const progress = await positionsOf(this.#pool, [...readers.values()]);
          for (const waiter of asking) waiter.reached(progress);
        } catch (error) {
          for (const waiter of asking) waiter.failed(error);
        }
        if (this.#waiters.size > 0) await delay(lookMs);
      }
    } finally {
      this.#looking = false;
    }
  }
}

/** Where the live generation of a projection reads on, by lane. */
export const nextOffsetsOf = async (pool: Pool, name: string): Promise<ReadonlyMap<string, bigint>> => {
  const { rows } = await pool.query({
    name: 'projection-offsets',
    text: `select c.lane, c.next_offset ${liveLanes} where p.name = $1`,
    values: [name],
  });
  return new Map(rows.map((row) => [row.lane, BigInt(row.next_offset ?? 0)]));
};

/** The largest number of unread records over the lanes; 0 when all lanes have reached these ends. */
const behindEnds = async (pool: Pool, name: string, ends: readonly LanePosition[]): Promise<bigint> => {
  const read = await nextOffsetsOf(pool, name);
  return ends.reduce((max, { lane, nextOffset }) => {
    const behind = (nextOffset ?? 0n) - (read.get(lane) ?? 0n);
    return behind > max ? behind : max;
  }, 0n);
};

/**
 * Records that the live generation of a projection has not applied yet: the largest number over its lanes, 0 at the
 * end.
 */
export const lagOf = async (pool: Pool, log: Log, name: string): Promise<bigint> =>
  behindEnds(pool, name, await log.ends(topicsOf(name)));

/**
 * Whether the live generation applies, within `timeoutMs`, every record that the log holds now; later records do not
 * count.
 */
export const reachesEnds = async (pool: Pool, log: Log, name: string, timeoutMs: number): Promise<boolean> => {
  const ends = await log.ends(topicsOf(name));
  for (const until = performance.now() + timeoutMs; performance.now() < until; await delay(10 * lookMs))
    if ((await behindEnds(pool, name, ends)) === 0n) return true;
  return false;
};

interface ParkedRow {
  readonly workspaceId: string;
  readonly stream: string;
}

/** Above this number answers carry no warning; `parked_streams` and /readyz have alerted the operator long before. */
const maxRows = 10_000;
/** Every GET waits for this query, milliseconds: a silent server must not hold each GET for the pool's own time-out. */
const answerMs = 1_000;

const parkedSql = `
${withFirsts(`select 'projection-' || name || '-v' || live from ${ownProjections} p`, maxRows)}
select workspace_id::text as "workspaceId", stream from firsts where workspace_id is not null limit ${maxRows}`;

/** Streams that the live read models have parked: their rows show the state before the parked event. */
export const parkedRows = async (pool: Pool): Promise<readonly ParkedRow[]> =>
  (await pool.query<ParkedRow>({ name: 'parked-rows', text: parkedSql, query_timeout: answerMs } as QueryConfig)).rows;
