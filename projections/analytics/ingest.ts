import type { ClickHouseClient } from '@clickhouse/client';
import type { Pool, PoolClient } from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import type { DecodedEvent, EventCodec } from '#runtime/codec.ts';
import { type ConsumeMetrics, type Consumer, consume, type Verdict } from '#runtime/consume.ts';
import { faultPoint } from '#runtime/fault-point.ts';
import type { Logger } from '#runtime/telemetry.ts';
import type { Topic } from '#schemas/topics.ts';
import { markDirty } from './dirty.ts';
import { accountObservationRow, holdsDay, observationRow, type Row } from './encode.ts';
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
  /** Told when there is something to recount. */
  readonly onMarked?: () => void;
}

/** An insert costs as much as some thousand rows of it. */
const batchEvents = 5_000;
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
  const touched = events.map(({ metadata, data, type }) => ({
    workspaceId: metadata.workspaceId,
    day: String(data.day),
    post: type === 'TargetMetricsObserved',
  }));
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
}

export const ingest = (version: number, options: IngestOptions): Consumer => {
  const { client, log, store, pool, codec, signal, logger, metrics, onMarked } = options;
  const ingester = new Ingester(client, version);
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
    // Marks and position are lost together, and what deletes a mark comes after both.
    relaxed: true,
    apply: async (tx, events) => {
      const verdict = await ingester.apply(tx, events);
      if (verdict !== null) return verdict;
      return { committed: () => onMarked?.(), rolledBack: () => undefined };
    },
    ...(metrics === undefined ? {} : { metrics }),
  });
};
