import type { ClickHouseClient } from '@clickhouse/client';
import type { Pool, PoolClient } from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import type { DecodedEvent, EventCodec } from '#runtime/codec.ts';
import {
  type Applied,
  type ConsumeMetrics,
  type Consumer,
  consume,
  type Move,
  type Verdict,
} from '#runtime/consume.ts';
import { faultPoint } from '#runtime/fault-point.ts';
import type { Logger } from '#runtime/telemetry.ts';
import type { Topic } from '#schemas/topics.ts';
import { markAndMove, markDirty } from './dirty.ts';
import { accountObservationRow, daysOf, holdsDay, observationRow, type Row } from './encode.ts';
import { Inserts } from './inserts.ts';
import { groupOf } from './live.ts';

/** Observations of the log into the raw tables of one version. */

export const topics: readonly Topic[] = ['metrics'];
export const kinds: readonly string[] = ['targetmetrics', 'accountmetrics'];

export interface IngestOptions {
  readonly client: ClickHouseClient;
  readonly log: Log;
  readonly store: EventStore;
  readonly pool: Pool;
  readonly codec: EventCodec;
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly metrics?: ConsumeMetrics;
  /** Told when there is something to recount. @param behind whether more of the log waits than a batch takes */
  readonly onMarked?: (behind: boolean) => void;
}

/** An insert costs as much as some thousand rows of it. */
const batchEvents = 5_000;
/** A batch with so many was not waited for: there are more behind it. */
const manyEvents = 1_000;
/** Where the log gathers, batches that are not full come no faster. */
const spacingMs = 200;

/** A verdict on the first event that cannot be stored, else the rows and the days they touch. */
const encoded = (events: readonly DecodedEvent[]) => {
  const posts: Row[] = [];
  const accounts: Row[] = [];
  for (const event of events) {
    const day = String(event.data.day);
    if (!holdsDay(day)) {
      const verdict: Verdict = { action: 'park', eventId: event.id, reason: `no table holds the day ${day}` };
      return { verdict };
    }
    if (event.type === 'TargetMetricsObserved') posts.push(observationRow(event));
    else accounts.push(accountObservationRow(event));
  }
  const touched = events.flatMap((event) =>
    daysOf(event).map((day) => ({
      workspaceId: event.metadata.workspaceId,
      day,
      post: event.type === 'TargetMetricsObserved',
    })),
  );
  return { verdict: null, batch: { posts, accounts }, touched };
};

/** Into the raw tables, then the marks on `tx`. */
export class Ingester {
  readonly #inserts: Inserts;
  readonly #version: number;

  constructor(client: ClickHouseClient, version: number) {
    this.#inserts = new Inserts(client, version);
    this.#version = version;
  }

  /**
   * If we die after the insert the position has not moved: the same rows, keyed by their events, are inserted again and
   * are the same rows; the days are marked with the position, so none of them is left uncounted.
   */
  async apply(tx: PoolClient, events: readonly DecodedEvent[]): Promise<Verdict | null> {
    const { verdict, batch, touched } = encoded(events);
    if (verdict !== null) return verdict;
    await this.#inserts.add(batch);
    faultPoint('analytics:after-insert');
    await markDirty(tx, this.#version, touched);
    return null;
  }

  /** The same without a transaction, which would be open, and hold a connection, while ClickHouse works. */
  async applyAtOnce(pool: Pool, events: readonly DecodedEvent[], move: Move): Promise<boolean> {
    const { verdict, batch, touched } = encoded(events);
    if (verdict !== null) return false;
    await this.#inserts.add(batch);
    faultPoint('analytics:after-insert');
    await markAndMove(pool, this.#version, touched, move);
    return true;
  }
}

export const ingest = (version: number, options: IngestOptions): Consumer => {
  const { client, log, store, pool, codec, signal, logger, metrics, onMarked } = options;
  const ingester = new Ingester(client, version);
  const told = ({ length }: readonly DecodedEvent[]): Applied => ({
    committed: () => onMarked?.(length >= manyEvents),
    rolledBack: () => undefined,
  });
  return consume({
    log,
    store,
    pool,
    codec,
    signal,
    logger,
    group: groupOf(version),
    topics,
    kinds,
    maxBatch: batchEvents,
    spacingMs,
    atOnce: async (events, move) => ((await ingester.applyAtOnce(pool, events, move)) ? told(events) : null),
    apply: async (tx, events) => (await ingester.apply(tx, events)) ?? told(events),
    ...(metrics === undefined ? {} : { metrics }),
  });
};
