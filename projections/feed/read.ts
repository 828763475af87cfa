import { isUtf8 } from 'node:buffer';
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { EventStore, RecordedEvent } from '#contracts/ports/event-store.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import { kindOf } from '#schemas/topics.ts';

/** Reads a workspace's feed: which events a page has is asked of Postgres, what they say of the store. */

/** Where the feed of a workspace ends now. */
export interface FeedEnd {
  readonly epoch: number;
  /** Events of the feed; 0: it has none. */
  readonly size: number;
}

/** An event's place in the feed. */
export interface FeedRow {
  readonly sequence: number;
  readonly position: bigint;
  readonly eventId: string;
  readonly stream: string;
  readonly revision: bigint;
  readonly type: string;
  /** ISO 8601; never before that of the event ahead of it. */
  readonly at: string;
  readonly clientId: string | null;
  /** Its leaf. */
  readonly hash: Buffer;
}

export interface FeedFilters {
  readonly types?: readonly string[];
  readonly stream?: string;
  /** Events of these clients alone. */
  readonly clientIds?: readonly string[];
}

/** Events that one page with filters looks at: a page may be empty though more follow. A stream has an index of its own. */
const maxLooked = 20_000;

export const feedEnd = async (pool: Pick<Pool, 'query'>, workspaceId: string): Promise<FeedEnd> => {
  const { rows } = await pool.query<{ readonly epoch: number | null; readonly size: string | null }>({
    name: 'feed-end',
    text: `select (select max(epoch) from ops.feed_epochs) as epoch,
      (select size from ops.feed_heads where workspace_id = $1) as size`,
    values: [workspaceId],
  });
  return { epoch: rows[0]?.epoch ?? 1, size: Number(rows[0]?.size ?? 0) };
};

/** The last sequence of a former epoch that every epoch since has kept; null: nothing of it was lost. */
export const keptOf = async (pool: Pick<Pool, 'query'>, workspaceId: string, epoch: number): Promise<number | null> => {
  const { rows } = await pool.query<{ kept: string | null }>(
    'select min(sequence) as kept from ops.feed_kept where workspace_id = $1 and epoch > $2',
    [workspaceId, epoch],
  );
  const kept = rows[0]?.kept ?? null;
  return kept === null ? null : Number(kept);
};

interface Row {
  readonly sequence: string;
  readonly position: string;
  readonly event_id: string;
  readonly stream: string;
  readonly revision: string;
  readonly type: string;
  readonly at: Date;
  readonly client_id: string | null;
  readonly hash: Buffer;
}

const asRow = ({ stream, type, hash, ...row }: Row): FeedRow => ({
  ...{ stream, type, hash, eventId: row.event_id, clientId: row.client_id, at: row.at.toISOString() },
  ...{ sequence: Number(row.sequence), position: BigInt(row.position), revision: BigInt(row.revision) },
});

/**
 * The rows after a sequence, and the sequence up to which they are all that fits.
 * @param until the last sequence that may be among them
 */
export const feedRows = async (
  knex: Knex,
  workspaceId: string,
  { types, stream, clientIds }: FeedFilters,
  { after, limit, until }: { readonly after: number; readonly limit: number; readonly until: number },
): Promise<{ readonly rows: readonly FeedRow[]; readonly upTo: number }> => {
  const isFiltered = stream === undefined && (types !== undefined || clientIds !== undefined);
  const last = isFiltered ? Math.min(until, after + maxLooked) : until;
  const query = knex('ops.feed_events')
    .select('sequence', 'position', 'event_id', 'stream', 'revision', 'type', 'at', 'client_id', 'hash')
    .where('workspace_id', workspaceId)
    .andWhere('sequence', '>', after)
    .andWhere('sequence', '<=', last)
    .orderBy('sequence')
    .limit(limit);
  if (types !== undefined) query.whereIn('type', types);
  if (stream !== undefined) query.andWhere('stream', stream);
  if (clientIds !== undefined) query.whereIn('client_id', clientIds);
  const rows = ((await query) as readonly Row[]).map(asRow);
  return { rows, upTo: rows.length === limit ? (rows.at(-1)?.sequence ?? last) : Math.max(after, last) };
};

/** Rows in one statement, for who reads all of the feed. */
export const feedPage = async (
  pool: Pick<Pool, 'query'>,
  workspaceId: string,
  { after, until, limit }: { readonly after: number; readonly until: number; readonly limit: number },
): Promise<readonly FeedRow[]> => {
  const { rows } = await pool.query<Row>({
    name: 'feed-page',
    text: `select sequence, position, event_id, stream, revision, type, at, client_id, hash from ops.feed_events
      where workspace_id = $1 and sequence > $2 and sequence <= $3 order by sequence limit $4`,
    values: [workspaceId, after, until, limit],
  });
  return rows.map(asRow);
};

/** What `request` streams hold is kept for a day, and is no event of the domain: no feed has it. */
export const isInFeed = (stream: string): boolean => kindOf(stream) !== 'request';

/** What the event says and who said it, as text; base64 where the bytes are none. */
export const textsOf = ({ data, metadata }: Pick<RecordedEvent, 'data' | 'metadata'>) => {
  const encoding = isUtf8(data) && isUtf8(metadata) ? 'utf8' : 'base64';
  const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString(encoding);
  return { data: textOf(data), metadata: textOf(metadata), encoding };
};

type Reads = Pick<EventStore, 'read' | 'readWorkspace'>;

/** Reads of single streams at once, and events of one such read. */
const readsAtOnce = 4;
const runEvents = 16;
const pageEvents = 500;
/** Bytes of events after which an answer ends: an event may have half a megabyte, and a page of the store eight. */
const maxBytes = 4 * 1_024 * 1_024;

const bytesOf = ({ data, metadata }: RecordedEvent): number => data.length + metadata.length;

/**
 * What the rows say, in their order: of the first of them alone, at least of one, where all would be too many bytes. Null: the
 * store no longer has the event, because its rule of retention dropped it.
 * @throws EventStoreError `unavailable`
 */
export const recordedOf = async (
  store: Reads,
  workspaceId: string,
  rows: readonly FeedRow[],
): Promise<readonly (RecordedEvent | null)[]> => {
  const [first, last] = [rows[0], rows.at(-1)];
  if (first === undefined || last === undefined) return [];
  const isDense = last.sequence - first.sequence < 2 * rows.length;
  const { found, upTo } = isDense ? await inOneGo(store, workspaceId, rows) : await byStream(store, rows);
  return rows.filter(({ sequence }) => sequence <= upTo).map(({ eventId }) => found.get(eventId) ?? null);
};

interface Found {
  readonly found: ReadonlyMap<string, RecordedEvent>;
  /** The last sequence that was looked for. */
  readonly upTo: number;
}

const inOneGo = async (store: Reads, workspaceId: string, rows: readonly FeedRow[]): Promise<Found> => {
  const [first, last] = [rows[0], rows.at(-1)] as [FeedRow, FeedRow];
  const found = new Map<string, RecordedEvent>();
  let bytes = 0;
  for (let begin: { from: bigint } | { after: bigint | null } = { from: first.position }; ; ) {
    const page = await store.readWorkspace(workspaceId, { ...begin, until: last.position, limit: pageEvents });
    for (const event of page.events) {
      found.set(event.id, event);
      bytes += bytesOf(event);
    }
    if (page.isEnd) return { found, upTo: last.sequence };
    const { next } = page;
    const read = rows.findLast(({ position }) => next !== null && position <= next);
    if (bytes >= maxBytes && read !== undefined) return { found, upTo: read.sequence };
    begin = { after: next };
  }
};

const byStream = async (store: Reads, rows: readonly FeedRow[]): Promise<Found> => {
  const found = new Map<string, RecordedEvent>();
  let bytes = 0;
  let upTo = 0;
  for (let from = 0; from < rows.length && bytes < maxBytes; from += readsAtOnce * runEvents) {
    const part = rows.slice(from, from + readsAtOnce * runEvents);
    await inParallel(runsOf(part), readsAtOnce, async (run) => {
      const [head] = run as [FeedRow];
      const events = await store.read(head.stream, { from: head.revision, limit: run.length });
      for (const event of events) {
        found.set(event.id, event);
        bytes += bytesOf(event);
      }
    });
    upTo = part.at(-1)?.sequence ?? upTo;
  }
  return { found, upTo };
};

/** Rows that follow each other in one stream. */
const runsOf = (rows: readonly FeedRow[]): readonly (readonly FeedRow[])[] => {
  const runs: FeedRow[][] = [];
  const open = new Map<string, FeedRow[]>();
  for (const row of rows) {
    const run = open.get(row.stream);
    if (run !== undefined && run.length < runEvents && run.at(-1)?.revision === row.revision - 1n) run.push(row);
    else {
      const begun = [row];
      runs.push(begun);
      open.set(row.stream, begun);
    }
  }
  return runs;
};
