/**
 * The log of a system without Kafka: the event table, read by position. No second copy, no relay; topic and partition
 * are columns written at append.
 */
import type pg from 'pg';
import { pause } from '#contracts/base/pause.ts';
import {
  type Lane,
  type LaneBatch,
  type LanePosition,
  type Log,
  LogError,
  type LogRecord,
  type LogSubscription,
  type SubscribeOptions,
} from '#contracts/ports/log.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { statements } from './event-store.sql.ts';
import { migrateEvents } from './event-store.ts';
import { EventTail } from './event-tail.ts';
import { acquireLease, type LogLease } from './log-lease.ts';
import { backoffMs, bigintTypes, checkSchemaName, isAccessDenied, openPool } from './pool.ts';
import { EventRecord, type TailEvent } from './stored-event.ts';

/** One member of a group that reads the event table by position. It holds the only lane, or stands by for it. */

/** The only lane. It carries every topic, so that idle partitions cost nothing. */
const lane: Lane = '*';

/**
 * Events read at once: the tail's window, shared by all subscriptions at the end of the table; a slow or late one reads
 * for itself. So a subscription holds one page, two while it catches up, and none waits for another.
 */
const pageEvents = 500;

/**
 * How often an idle consumer stores that it has skipped events of other topics, milliseconds. It only keeps the lag
 * correct and the next start short. A caller that waits for its own write does not need it: it waits for an event of a
 * topic that this consumer reads, and those are never skipped.
 */
const passOverMs = 1000;

/**
 * Default of the consumer's setting. The first event after a rest is delivered at once. Each transaction costs as much
 * as many events.
 */
const defaultSpacingMs = 40;

interface LogSource {
  readonly url: string;
  readonly schema: string;
  readonly tail: EventTail;
  head(): Promise<bigint>;
}

type Coming = NonNullable<LaneBatch['next']>;

interface Page {
  readonly events: readonly TailEvent[];
  /** Records of the subscription's topics and types. */
  readonly records: readonly LogRecord[];
  readonly isFull: boolean;
}

type Failure = { readonly error: unknown } | null;

const isFenced = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'fenced';

/** One member of a group that reads the event table by position. It holds the only lane, or stands by for it. */
class PostgresSubscription implements LogSubscription {
  readonly done: Promise<void>;
  readonly #source: LogSource;
  readonly #options: SubscribeOptions;
  readonly #topics: ReadonlySet<string>;
  /** Null: all. */
  readonly #types: ReadonlySet<string> | null;
  #holds = false;
  #reread = new AbortController();

  constructor(source: LogSource, options: SubscribeOptions) {
    this.#source = source;
    this.#options = options;
    this.#topics = new Set(options.topics);
    this.#types = options.types === undefined ? null : new Set(options.types);
    this.done = this.#run().finally(source.tail.join(this.#types));
    // A caller that awaits `done` still gets the error; one that awaits it later must not bring the process down.
    this.done.catch(() => undefined);
  }

  lanes(): readonly Lane[] {
    return this.#holds ? [lane] : [];
  }

  /**
   * Releases the lane first: a process with other code may take it and get past the event that this one cannot apply.
   */
  again(): void {
    this.#reread.abort();
  }

  async #run(): Promise<void> {
    const { signal, group } = this.#options;
    const { url, schema } = this.#source;
    let failures = 0;
    while (!signal.aborted) {
      let lease: LogLease | null;
      try {
        lease = await acquireLease({ url, name: `log ${schema} ${group}`, signal });
        failures = 0;
      } catch (error) {
        if (isAccessDenied(error))
          throw new LogError('fatal', 'Postgres refuses access to the event table', { cause: error });
        await pause(backoffMs(failures++), signal);
        continue;
      }
      if (lease === null) continue;
      this.#reread = new AbortController();
      try {
        const failure = await this.#hold(AbortSignal.any([signal, lease.lost, this.#reread.signal]));
        // A handler that gives up because of the signal has not failed.
        if (failure !== null && !signal.aborted) throw failure.error;
      } finally {
        this.#holds = false;
        await lease.release();
      }
      // Fenced or cut off: the member that fenced this one goes first.
      await pause(50 + Math.random() * 200, signal);
    }
  }

  /** From the lane's assignment to its loss. A failure ends the subscription. */
  async #hold(signal: AbortSignal): Promise<Failure> {
    const { handlers, maxBatch = 500, spacingMs = defaultSpacingMs } = this.#options;
    const { tail } = this.#source;
    const readEvents = Math.max(pageEvents, maxBatch);
    const recordsOf = (page: readonly TailEvent[]): readonly LogRecord[] => {
      const last = page.findLast(({ topic }) => topic !== null && this.#topics.has(topic));
      return page.flatMap((event) => {
        const { topic, type } = event;
        if (topic === null || !this.#topics.has(topic)) return [];
        return this.#types?.has(type) === false && event !== last ? [] : [new EventRecord(event, topic)];
      });
    };
    let after: bigint;
    let position: bigint | null;
    try {
      const [stored] = await handlers.assigned([lane]);
      after = stored?.nextOffset ?? 0n;
      position = stored?.position ?? null;
      this.#holds = !signal.aborted;
    } catch (error) {
      return { error };
    }
    const beyond = await this.#beyondHead(after, signal);
    if (beyond !== null) return { error: beyond };

    let stored = after;
    let storedAt = performance.now();
    const hand = async (
      records: readonly LogRecord[],
      nextOffset: bigint,
      next: Coming = [],
    ): Promise<'done' | 'fenced' | Failure> => {
      const batch: LaneBatch = { lane, records, nextOffset, position: records.at(-1)?.position ?? position, next };
      try {
        await handlers.batch(batch);
      } catch (error) {
        return isFenced(error) ? 'fenced' : { error };
      }
      ({ position } = batch);
      stored = nextOffset;
      storedAt = performance.now();
      return 'done';
    };

    const read = async (): Promise<Page> => {
      const { events, isFull } = await tail.read(after, readEvents);
      return { events, records: recordsOf(events), isFull };
    };
    let coming: Promise<Page> | null = null;
    for (let failures = 0; !signal.aborted; ) {
      const { version } = tail;
      let page: Page;
      try {
        page = await (coming ?? read());
        failures = 0;
      } catch {
        await pause(backoffMs(failures++), signal);
        continue;
      } finally {
        coming = null;
      }
      const { events, records, isFull } = page;
      after = events.at(-1)?.position ?? after;
      const begun = performance.now();
      // While its handler works, a member that catches up reads the next page. A failure waits until that page's turn.
      coming = isFull ? read() : null;
      const following = coming?.then((next) => next.records.slice(0, maxBatch));
      following?.catch(() => undefined);
      for (let i = 0; i < records.length && !signal.aborted; i += maxBatch) {
        const slice = records.slice(i, i + maxBatch);
        // The last batch also moves past the skipped events behind it.
        const end = i + maxBatch >= records.length ? after : (slice.at(-1)?.position ?? after);
        const rest = records.slice(i + maxBatch, i + 2 * maxBatch);
        const outcome = await hand(slice, end, rest.length > 0 ? rest : (following ?? []));
        if (outcome === 'fenced') return null;
        if (outcome !== 'done') return outcome;
      }
      if (after > stored && records.length === 0 && performance.now() - storedAt >= passOverMs && !signal.aborted) {
        const outcome = await hand([], after);
        if (outcome === 'fenced') return null;
        if (outcome !== 'done') return outcome;
      }
      if (events.length === 0) await tail.changed(version, signal);
      else if (!isFull) {
        const spacing = typeof spacingMs === 'number' ? spacingMs : spacingMs();
        if (spacing > 0) await pause(Math.max(0, begun + spacing - performance.now()), signal);
      }
    }
    return null;
  }

  /**
   * A position that the table never reached: the table was restored from an older copy, and the stored position belongs
   * to another history.
   */
  async #beyondHead(after: bigint, signal: AbortSignal): Promise<LogError | null> {
    for (let failures = 0; !signal.aborted; ) {
      try {
        const head = await this.#source.head();
        if (after <= head) return null;
        const { group } = this.#options;
        return new LogError(
          'fatal',
          `group ${group} has read to ${after}, the event table ends at ${head}: rebuild it`,
        );
      } catch {
        await pause(backoffMs(failures++), signal);
      }
    }
    return null;
  }
}

interface PostgresLogOptions {
  readonly url: string;
  /** Schema of the event table. Default `es`. */
  readonly schema?: string;
  /** Default 12. */
  readonly partitions?: number;
  /** The event store of this process, where it has one: a process reads with one tail. The log does not close it. */
  readonly store?: { readonly tail: EventTail; readonly pool: pg.Pool };
  /** Milliseconds after which the log's own tail polls where no notification came. Default 1,000. */
  readonly pollMs?: number;
}

class PostgresLog implements Log {
  readonly partitions: number;
  readonly reset = null;
  readonly #url: string;
  readonly #schema: string;
  readonly #pool: pg.Pool;
  readonly #tail: EventTail;
  readonly #owned: boolean;
  readonly #closing = new AbortController();
  readonly #open = new Set<LogSubscription>();

  constructor(options: PostgresLogOptions) {
    const { url, store, pollMs = 1000 } = options;
    this.partitions = options.partitions ?? defaultPartitions;
    this.#url = url;
    this.#schema = checkSchemaName(options.schema ?? 'es');
    this.#owned = store === undefined;
    this.#pool = store?.pool ?? openPool({ url, max: 2, name: 'log-read', byKey: true });
    this.#tail = store?.tail ?? new EventTail({ pool: this.#pool, url, schema: this.#schema, pollMs });
  }

  /** @throws LogError `partition_mismatch | unavailable` */
  async prepare(): Promise<void> {
    if (!this.#owned) return;
    try {
      await migrateEvents(this.#pool, this.#schema, this.partitions);
    } catch (cause) {
      if (cause instanceof LogError) throw cause;
      throw new LogError('unavailable', 'Postgres does not answer', { cause });
    }
  }

  subscribe(options: SubscribeOptions): LogSubscription {
    const signal = AbortSignal.any([options.signal, this.#closing.signal]);
    const source = { url: this.#url, schema: this.#schema, tail: this.#tail, head: () => this.#head() };
    const subscription = new PostgresSubscription(source, { ...options, signal });
    this.#open.add(subscription);
    subscription.done.catch(() => undefined).finally(() => this.#open.delete(subscription));
    return subscription;
  }

  laneOf(): Lane {
    return lane;
  }

  async ends(): Promise<readonly LanePosition[]> {
    try {
      return [{ lane, nextOffset: await this.#head(), position: null }];
    } catch (cause) {
      throw new LogError('unavailable', 'Postgres does not answer', { cause });
    }
  }

  async ping(): Promise<void> {
    await this.ends();
  }

  /** Ends every subscription; the store's tail stays open. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([...this.#open].map((subscription) => subscription.done));
    if (!this.#owned) return;
    await this.#tail.close();
    await this.#pool.end();
  }

  /** Position of the newest event, 0 when there is none. */
  async #head(): Promise<bigint> {
    const { rows } = await this.#pool.query<[bigint]>({
      text: statements(this.#schema).head,
      rowMode: 'array',
      types: bigintTypes,
    });
    return rows[0]?.[0] ?? 0n;
  }
}

/**
 * Creates the event tables where they are missing.
 * @throws LogError `partition_mismatch` when they were made with another count, `unavailable` when Postgres does not
 * answer
 */
export const openPostgresLog = async (options: PostgresLogOptions): Promise<Log> => {
  const log = new PostgresLog(options);
  try {
    await log.prepare();
  } catch (error) {
    await log.close();
    throw error;
  }
  return log;
};
