import type { Pool } from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { LanePosition, Log } from '#contracts/ports/log.ts';
import { streamKinds } from '#schemas/events.ts';
import { topics as allTopics, type Topic } from '#schemas/topics.ts';
import { kinds as metricKinds, topics as metricTopics } from '../analytics/ingest.ts';
import { groupOf as analyticsGroupOf } from '../analytics/live.ts';
import type { RebuildReason } from '../engine/open-rebuilds.ts';
import { dispatcher } from '../engine/positions.ts';
import { isRebuilding } from '../engine/rebuild.ts';
import { leastOf } from '../engine/replay.ts';
import { isInFeed } from '../feed/read.ts';
import { groupOf, projections } from '../index.ts';
import { ownProjections } from '../shapes.ts';
import { relayedUpTo } from './freshness.ts';

/**
 * How far each reader of the events is with those of one workspace. What is known of a reader is the position of the store up
 * to which it has everything, which nobody else may see: so it is said by the numbers that the workspace's feed gave its events.
 */

export type ReaderKind = 'read_model' | 'analytics' | 'webhook_dispatch' | 'feed';

export interface OpenRebuildState {
  readonly reason: RebuildReason;
  readonly since: Date;
  /** Null: no process runs it, because the one that did died; it is gone on with or begun anew. */
  readonly phase: 'reading' | 'following' | null;
  /** Of the store that is read, 0 to 1. */
  readonly progress: number;
  /** When the store took the last event that was read. */
  readonly readTo: Date | null;
}

export interface ReaderState {
  readonly name: string;
  readonly kind: ReaderKind;
  readonly epoch: number;
  /** Every event of the workspace up to this number that the reader reads is applied. */
  readonly sequence: number;
  /** Events of the workspace that wait, at most `maxCounted`. */
  readonly behind: number;
  /** When the store took the first of them; null: none waits. */
  readonly waitsSince: Date | null;
  readonly rebuilding: OpenRebuildState | null;
}

/** Events behind a position that are counted. */
export const maxCounted = 10_000;
/** Of the feed itself, which are read from the store. */
const maxRead = 500;

interface Sources {
  readonly pool: Pool;
  readonly store: Pick<EventStore, 'head' | 'readWorkspace'>;
  readonly log: Pick<Log, 'ends' | 'reset' | 'laneOf' | 'partitions'>;
  /** Whether there are analytics. */
  readonly analytics: boolean;
}

interface Reader {
  readonly name: string;
  readonly kind: ReaderKind;
  readonly group: string;
  readonly topics: readonly Topic[];
  /** Of the streams that it reads. */
  readonly kinds: readonly string[];
}

type Reads = ReadonlyMap<string, ReadonlyMap<string, LanePosition>>;

export class ReaderStates {
  readonly #sources: Sources;

  constructor(sources: Sources) {
    this.#sources = sources;
  }

  async of(workspaceId: string): Promise<readonly ReaderState[]> {
    const { pool, store, log, analytics } = this.#sources;
    const readers = readersOf(await liveGenerations(pool, analytics));
    // What is stored now, then what the log has of it, then how far each has read: a reader at the ends has all of it.
    const head = await store.head();
    const copied = log.reset === null ? head : await relayedUpTo(pool);
    const ends = await log.ends(allTopics);
    const reads = await readsOf(pool, readers);
    const feed = await feedOf(pool);
    const rebuilds = await rebuildsOf(pool);
    const reached = readers.map((reader) => appliedUpTo(reader, { ends, reads, log, copied }));
    const behind = await behindOf(pool, workspaceId, readers, reached);
    const numbered = await this.#unnumbered(workspaceId, head, feed.position);
    return [
      ...readers.map(({ name, kind }): ReaderState => {
        const own = behind.get(name) ?? { sequence: 0, behind: 0, waitsSince: null };
        return { ...{ name, kind, epoch: feed.epoch, ...own }, rebuilding: rebuilds.get(name) ?? null };
      }),
      {
        name: 'feed',
        kind: 'feed',
        epoch: feed.epoch,
        sequence: await sizeOf(pool, workspaceId),
        ...numbered,
        rebuilding: null,
      },
    ];
  }

  /** Events of the workspace that have no number yet. */
  async #unnumbered(
    workspaceId: string,
    head: bigint | null,
    after: bigint | null,
  ): Promise<Pick<ReaderState, 'behind' | 'waitsSince'>> {
    if (head === null || (after !== null && after >= head)) return { behind: 0, waitsSince: null };
    const page = await this.#sources.store.readWorkspace(workspaceId, { after, limit: maxRead, until: head });
    const waiting = page.events.filter(({ stream }) => isInFeed(stream));
    return { behind: waiting.length, waitsSince: waiting[0]?.created ?? null };
  }
}

interface Generations {
  readonly models: ReadonlyMap<string, number>;
  /** Null: there are none. */
  readonly analytics: number | null;
}

const liveGenerations = async (pool: Pool, analytics: boolean): Promise<Generations> => {
  const { rows } = await pool.query<{ name: string | null; live: number | null }>({
    name: 'reader-generations',
    text: `select name, live from ${ownProjections} p union all select null, live from ops.analytics_versions`,
  });
  const models = rows.flatMap(({ name, live }) => (name === null || live === null ? [] : [[name, live] as const]));
  return {
    models: new Map(models),
    analytics: analytics ? (rows.find(({ name }) => name === null)?.live ?? null) : null,
  };
};

/** The kinds of streams that travel on any topic. */
const loggedKinds = Object.entries(streamKinds).flatMap(([kind, { topic }]) => (topic === null ? [] : [kind]));

const readersOf = ({ models, analytics }: Generations): readonly Reader[] => [
  ...projections.map(({ name, topics, models: of }): Reader => {
    const kinds = of.map(({ kind }) => kind);
    return { name, kind: 'read_model', group: groupOf(name, models.get(name) ?? 0), topics, kinds };
  }),
  ...(analytics === null
    ? []
    : [
        {
          ...{ name: 'analytics', kind: 'analytics' as const, group: analyticsGroupOf(analytics) },
          ...{ topics: metricTopics, kinds: metricKinds },
        },
      ]),
  { ...dispatcher, name: 'webhook_dispatch', kind: 'webhook_dispatch', kinds: loggedKinds },
];

const readsOf = async (pool: Pool, readers: readonly Reader[]): Promise<Reads> => {
  const { rows } = await pool.query<{ group: string; lane: string; next: string | null; position: string | null }>({
    name: 'reader-lanes',
    text: `select consumer_group as group, lane, next_offset as next, position from ops.consumer_positions
      where consumer_group = any($1::text[])`,
    values: [readers.map(({ group }) => group)],
  });
  const found = new Map<string, Map<string, LanePosition>>(readers.map(({ group }) => [group, new Map()]));
  const asBigInt = (text: string | null): bigint | null => (text === null ? null : BigInt(text));
  for (const { group, lane, next, position } of rows)
    found.get(group)?.set(lane, { lane, nextOffset: asBigInt(next), position: asBigInt(position) });
  return found;
};

interface Known {
  readonly ends: readonly LanePosition[];
  readonly reads: Reads;
  readonly log: Sources['log'];
  /** What the log has of the store. */
  readonly copied: bigint | null;
}

/**
 * Position of the store up to which the reader has applied everything; null: nothing. Over several lanes it is that of the
 * late one that is the furthest behind, which may be long ago where the lane was idle: a bound, never too far ahead.
 */
const appliedUpTo = (reader: Reader, { ends, reads, log, copied }: Known): bigint | null => {
  const partitions = Array.from({ length: log.partitions }, (_, at) => at);
  const own = new Set(reader.topics.flatMap((topic) => partitions.map((at) => log.laneOf(topic, at))));
  const read = reads.get(reader.group);
  const late = ends.filter(
    ({ lane, nextOffset }) => own.has(lane) && (read?.get(lane)?.nextOffset ?? 0n) < (nextOffset ?? 0n),
  );
  if (late.length === 0) return copied;
  // The embedded log moves its offset, a position of the store, past events of other topics.
  const positions = late.map(({ lane }) => read?.get(lane)?.[log.reset === null ? 'nextOffset' : 'position'] ?? null);
  return leastOf([copied, ...positions]);
};

interface FeedPlace {
  readonly epoch: number;
  readonly position: bigint | null;
}

const feedOf = async (pool: Pool): Promise<FeedPlace> => {
  const { rows } = await pool.query<{ epoch: number | null; position: string | null }>({
    name: 'reader-feed',
    text: 'select (select max(epoch) from ops.feed_epochs) as epoch, (select position from ops.feed_position) as position',
  });
  const position = rows[0]?.position ?? null;
  return { epoch: rows[0]?.epoch ?? 1, position: position === null ? null : BigInt(position) };
};

const sizeOf = async (pool: Pool, workspaceId: string): Promise<number> => {
  const { rows } = await pool.query<{ size: string }>({
    name: 'reader-size',
    text: 'select size from ops.feed_heads where workspace_id = $1',
    values: [workspaceId],
  });
  return Number(rows[0]?.size ?? 0);
};

/** Numbers rise with positions, so the last number up to a position is found in as many steps as their count has digits. */
const behindSql = `
with recursive asked as (
  select * from unnest($2::text[], $3::int8[], $4::text[]) as a (name, position, kinds)
), search (name, position, kinds, low, high) as (
  select name, position, kinds, 0::int8,
    coalesce((select size from ops.feed_heads where workspace_id = $1), 0::int8) from asked
  union all
  select s.name, s.position, s.kinds,
    case when e.position <= s.position then e.sequence else s.low end,
    case when e.position <= s.position then s.high else e.sequence - 1 end
  from search s join ops.feed_events e on e.workspace_id = $1 and e.sequence = (s.low + s.high + 1) / 2
  where s.low < s.high
)
select s.name, coalesce(w.first - 1, (select size from ops.feed_heads where workspace_id = $1), 0) as sequence,
  w.behind, w.since
from search s cross join lateral (
  select min(sequence) as first, count(*)::int as behind, min(at) as since from (
    select sequence, at, stream from ops.feed_events where workspace_id = $1 and sequence > s.low
    order by sequence limit ${maxCounted}
  ) e where split_part(stream, '-', 1) = any(string_to_array(s.kinds, ','))
) w where s.low >= s.high`;

type Behind = Pick<ReaderState, 'sequence' | 'behind' | 'waitsSince'>;

const behindOf = async (
  pool: Pool,
  workspaceId: string,
  readers: readonly Reader[],
  reached: readonly (bigint | null)[],
): Promise<ReadonlyMap<string, Behind>> => {
  const { rows } = await pool.query<{ name: string; sequence: string; behind: number; since: Date | null }>({
    name: 'reader-behind',
    text: behindSql,
    values: [
      workspaceId,
      readers.map(({ name }) => name),
      reached.map((position) => position ?? -1n),
      readers.map(({ kinds }) => kinds.join(',')),
    ],
  });
  return new Map(
    rows.map(({ name, sequence, behind, since }) => [name, { sequence: Number(sequence), behind, waitsSince: since }]),
  );
};

interface RebuildRow {
  readonly name: string;
  readonly reason: RebuildReason;
  readonly began_at: Date;
  readonly read_to: Date | null;
  readonly share: number;
  readonly is_following: boolean;
  readonly runs: boolean;
}

const rebuildsOf = async (pool: Pool): Promise<ReadonlyMap<string, OpenRebuildState>> => {
  const { rows } = await pool.query<RebuildRow>({
    name: 'reader-rebuilds',
    text: `select name, reason, began_at, read_to, is_following,
        case when position is null or up_to = 0 then 0 else least(1, position::float8 / up_to) end as share,
        ${isRebuilding('name')} as runs
      from ops.rebuilds`,
  });
  return new Map(
    rows.map((row) => [
      row.name,
      {
        ...{ reason: row.reason, since: row.began_at, readTo: row.read_to },
        phase: row.runs ? (row.is_following ? 'following' : 'reading') : null,
        progress: row.is_following ? 1 : row.share,
      } as const,
    ]),
  );
};
