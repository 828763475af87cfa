import type { Pool } from 'pg';
import { plainArray, textArray } from '#contracts/base/array-literals.ts';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { type EventStore, EventStoreError, type RecordedEvent, workspaceOf } from '#contracts/ports/event-store.ts';
import { emptyFrontier, type Frontier, leafOf } from '#domain/tree.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { kindOf } from '#schemas/topics.ts';
import { beginEpoch, type Reached } from './epochs.ts';
import { isInFeed } from './read.ts';
import { frontierOf, grow, type KeptSubtree } from './tree.ts';

/**
 * Numbers every event of every workspace in the order of the store. One statement writes the numbers, the tree and how far
 * the store has been read: if we die before it, the next process reads the same events again and gives them the same
 * numbers; if we die after it, it goes on behind them. A second process that has not noticed that it lost its lease moves
 * nothing, because the position is no longer the one it read from.
 */

/** Events of one statement. */
const maxBatch = 500;
const maxWaiting = 2_000;
const maxWaitingBytes = 16 * 1_024 * 1_024;
/** How long an event waits for others: numbers are nobody's first read. Milliseconds. */
const lingerMs = 50;

/** Heads and clients of streams that this process remembers. */
const maxHeads = 10_000;
const maxStreams = 100_000;

export interface NumberOptions {
  readonly store: Pick<EventStore, 'subscribe' | 'readAll' | 'head'>;
  readonly pool: Pool;
  readonly signal: AbortSignal;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

interface Head {
  readonly frontier: Frontier;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

interface Numbered {
  readonly workspaceId: string;
  readonly sequence: number;
  readonly event: RecordedEvent;
  readonly at: string;
  readonly clientId: string | null;
  readonly hash: Buffer;
}

/** Runs until the signal, or until another process has moved the position: the caller begins it again. */
export const numberEvents = async (options: NumberOptions): Promise<void> => {
  const { store, pool, logger } = options;
  const reached = await beginEpoch(pool, store, logger);
  const over = new AbortController();
  const signal = AbortSignal.any([options.signal, over.signal]);
  const waiting = new Waiting(signal);
  const read = async (): Promise<void> => {
    for await (const item of store.subscribe({ after: reached.position, signal })) {
      if (item.kind === 'event') await waiting.add(item.event);
    }
    if (!signal.aborted) throw new EventStoreError('unavailable', 'the store ended its subscription');
  };
  const write = async (): Promise<void> => {
    const numbers = new Numbers(pool, reached);
    for (let batch = await waiting.take(); batch.length > 0; batch = await waiting.take()) {
      if (!(await numbers.write(batch))) return;
    }
  };
  const end = <T>(work: Promise<T>): Promise<T> => work.finally(() => over.abort());
  const ends = await Promise.allSettled([end(read()), end(write())]);
  for (const one of ends) if (one.status === 'rejected') throw one.reason;
};

/** Events that were read and not written yet: one side adds, the other takes. */
class Waiting {
  readonly #signal: AbortSignal;
  #events: RecordedEvent[] = [];
  #bytes = 0;
  /** Of the sides that wait: each may be behind the other, so that an end of one wait leaves the other's. */
  readonly #waits = new Set<() => void>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  /** Waits while there is no room. */
  async add(event: RecordedEvent): Promise<void> {
    while (!this.#signal.aborted && (this.#events.length >= maxWaiting || this.#bytes >= maxWaitingBytes)) {
      await this.#change();
    }
    this.#events.push(event);
    this.#bytes += event.data.length + event.metadata.length;
    if (this.#events.length === 1 || this.#events.length >= maxBatch) this.#wake();
  }

  /** Waits for the first, and a moment for those behind it; empty at the end. */
  async take(): Promise<readonly RecordedEvent[]> {
    while (this.#events.length === 0 && !this.#signal.aborted) await this.#change();
    const isFull = this.#events.length >= maxBatch || this.#bytes >= maxWaitingBytes;
    if (!isFull && !this.#signal.aborted) await this.#change(lingerMs);
    if (this.#signal.aborted) return [];
    const batch = this.#events.splice(0, maxBatch);
    for (const { data, metadata } of batch) this.#bytes -= data.length + metadata.length;
    this.#wake();
    return batch;
  }

  #wake(): void {
    for (const resolve of this.#waits) resolve();
  }

  async #change(withinMs?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waits.add(resolve);
    const timer = withinMs === undefined ? undefined : setTimeout(resolve, withinMs);
    await promise;
    clearTimeout(timer);
    this.#waits.delete(resolve);
  }
}

interface Written {
  readonly rows: readonly Numbered[];
  readonly kept: readonly (KeptSubtree & { readonly workspaceId: string })[];
  readonly heads: ReadonlyMap<string, Head>;
}

/** Gives numbers behind those that Postgres has. */
class Numbers {
  readonly #pool: Pool;
  #reached: Reached;
  readonly #heads = new BoundedMap<string, Head>(maxHeads);
  readonly #clients = new BoundedMap<string, string | null>(maxStreams);

  constructor(pool: Pool, reached: Reached) {
    this.#pool = pool;
    this.#reached = reached;
  }

  /** False: another process has written, or a restore was declared: what this one knows is of former times. */
  async write(batch: readonly RecordedEvent[]): Promise<boolean> {
    const ours = batch.flatMap((event) => {
      const workspaceId = isInFeed(event.stream) ? workspaceOf(event.metadata) : null;
      return workspaceId === null ? [] : [{ workspaceId, event }];
    });
    await this.#loadHeads(ours.map(({ workspaceId }) => workspaceId));
    await this.#loadClients(ours.map(({ event }) => event));
    const made = this.#numbered(ours);
    if (!(await this.#store(made, batch.at(-1) as RecordedEvent))) return false;
    for (const [workspaceId, head] of made.heads) this.#heads.set(workspaceId, head);
    return true;
  }

  #numbered(ours: readonly { readonly workspaceId: string; readonly event: RecordedEvent }[]): Written {
    const rows: Numbered[] = [];
    const kept: (KeptSubtree & { readonly workspaceId: string })[] = [];
    const heads = new Map<string, Head>();
    for (const { workspaceId, event } of ours) {
      const before = heads.get(workspaceId) ?? this.#heads.get(workspaceId) ?? { frontier: emptyFrontier, at: 0 };
      const hash = leafOf(event);
      const grown = grow(before.frontier, [hash]);
      const at = Math.max(before.at, event.created.getTime());
      heads.set(workspaceId, { frontier: grown.frontier, at });
      kept.push(...grown.kept.map((one) => ({ ...one, workspaceId })));
      const clientId = this.#clients.get(event.stream) ?? null;
      const sequence = grown.frontier.size;
      rows.push({ workspaceId, sequence, event, at: new Date(at).toISOString(), clientId, hash });
    }
    return { rows, kept, heads };
  }

  async #loadHeads(workspaceIds: readonly string[]): Promise<void> {
    const unknown = [...new Set(workspaceIds)].filter((id) => !this.#heads.has(id));
    if (unknown.length === 0) return;
    const { rows } = await this.#pool.query<{ id: string; size: string; at: Date; frontier: Buffer }>(
      'select workspace_id as id, size, at, frontier from ops.feed_heads where workspace_id = any($1::uuid[])',
      [unknown],
    );
    for (const { id, size, at, frontier } of rows) {
      this.#heads.set(id, { frontier: frontierOf(Number(size), frontier), at: at.getTime() });
    }
  }

  /** The client of a stream is the one that its newest event names: most streams name it in the first alone. */
  async #loadClients(events: readonly RecordedEvent[]): Promise<void> {
    const unknown = new Set<string>();
    const here = new Set<string>();
    for (const event of events) {
      const named = clientIn(event);
      if (named !== undefined) {
        this.#clients.set(event.stream, named);
        here.add(event.stream);
      } else if (!this.#clients.has(event.stream)) unknown.add(event.stream);
    }
    for (const stream of here) unknown.delete(stream);
    if (unknown.size === 0) return;
    const { rows } = await this.#pool.query<{ stream: string; client_id: string | null }>(
      `select distinct on (stream) stream, client_id from ops.feed_events where stream = any($1::text[])
       order by stream, revision desc`,
      [[...unknown]],
    );
    const found = new Map(rows.map(({ stream, client_id }) => [stream, client_id]));
    for (const stream of unknown) this.#clients.set(stream, found.get(stream) ?? null);
  }

  async #store({ rows, kept, heads }: Written, { position, id }: RecordedEvent): Promise<boolean> {
    const each = (of: (row: Numbered) => string | number | bigint | null): string => plainArray(rows.map(of));
    const { rowCount } = await this.#pool.query({
      name: 'feed-number',
      text: numberSql,
      values: [
        ...[position, id, this.#reached.position, this.#reached.restoredAt],
        ...[each((one) => one.workspaceId), each((one) => one.sequence), each(({ event }) => event.position)],
        ...[each(({ event }) => event.id), textArray(rows.map(({ event }) => event.stream))],
        ...[each(({ event }) => event.revision), textArray(rows.map(({ event }) => event.type))],
        ...[each((one) => one.at), each((one) => one.clientId)],
        each(({ hash }) => hash.toString('hex')),
        ...[plainArray(kept.map((one) => one.workspaceId)), plainArray(kept.map(({ level }) => level))],
        ...[plainArray(kept.map(({ index }) => index)), plainArray(kept.map(({ hash }) => hash.toString('hex')))],
        ...[plainArray([...heads.keys()]), plainArray([...heads.values()].map(({ frontier }) => frontier.size))],
        plainArray([...heads.values()].map(({ at }) => new Date(at).toISOString())),
        plainArray([...heads.values()].map(({ frontier }) => Buffer.concat(frontier.hashes).toString('hex'))),
      ],
    });
    if (rowCount !== 1) return false;
    this.#reached = { ...this.#reached, position };
    return true;
  }
}

/** The statement writes all or nothing: nothing where the position has moved, or a restore was declared that no epoch follows. */
const numberSql = `
with moved as (
  update ops.feed_position set position = $1, event_id = $2
  where position is not distinct from $3::int8
    and not exists (select from ops.restores r where r.restored_at > coalesce($4::timestamptz, '-infinity'))
  returning 1
), events as (
  insert into ops.feed_events
    (workspace_id, sequence, position, event_id, stream, revision, type, at, client_id, hash)
  select e.w, e.s, p, i, t, r, y, coalesce(m.at, a), c, decode(h, 'hex') from moved cross join unnest(
    $5::uuid[], $6::int8[], $7::int8[], $8::uuid[], $9::text[], $10::int8[], $11::text[], $12::timestamptz[],
    $13::uuid[], $14::text[]) as e (w, s, p, i, t, r, y, a, c, h)
    -- Of a workspace that came from another installation: when the store there took the event.
    left join ops.moved_times m on m.workspace_id = e.w and m.sequence = e.s
), subtrees as (
  insert into ops.feed_subtrees (workspace_id, level, index, hash)
  select w, l, i, decode(h, 'hex') from moved, unnest($15::uuid[], $16::int2[], $17::int8[], $18::text[]) as s (w, l, i, h)
), heads as (
  insert into ops.feed_heads (workspace_id, size, at, frontier)
  select w, s, a, decode(f, 'hex') from moved, unnest($19::uuid[], $20::int8[], $21::timestamptz[], $22::text[]) as h (w, s, a, f)
  on conflict (workspace_id) do update set size = excluded.size, at = excluded.at, frontier = excluded.frontier
)
select 1 from moved`;

const member = Buffer.from('"clientId":');
const uuid = /^"([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"/;

/** The client that the event names; null: it says that there is none; undefined: it names none. Apps have a clientId of another kind. */
const clientIn = ({ stream, data }: RecordedEvent): string | null | undefined => {
  const kind = kindOf(stream);
  if (kind === 'client') return stream.slice('client-'.length);
  if (kind === 'grant') return null;
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const at = bytes.indexOf(member);
  if (at < 0) return undefined;
  const inner = bytes.indexOf('{', 1);
  if (inner < 0 || inner > at) {
    // Ahead of the first object inside it, the member is the event's own: nothing else has to be read.
    const from = at + member.length;
    return uuid.exec(bytes.toString('latin1', from, from + 38))?.[1] ?? null;
  }
  const named = (JSON.parse(bytes.toString('utf8')) as { readonly clientId?: unknown }).clientId;
  if (named === undefined) return undefined;
  return typeof named === 'string' && uuid.test(`"${named}"`) ? named : null;
};
