/**
 * The log of a system without Kafka: the event table, read by position. No second copy, no relay; topic and partition
 * are columns written at append.
 */
import type pg from 'pg';
import type { SubscribeOptions } from '#contracts/ports/log.ts';
import { type Lane, type LanePosition, type Log, LogError, type LogSubscription } from '#contracts/ports/log.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { statements } from './event-store.sql.ts';
import { migrateEvents } from './event-store.ts';
import { EventTail } from './event-tail.ts';
import { lane, PostgresSubscription } from './log-subscription.ts';
import { bigintTypes, checkSchemaName, openPool } from './pool.ts';

export interface PostgresLogOptions {
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
