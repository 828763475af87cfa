import type { ClickHouseClient } from '@clickhouse/client';
import type { Pool, PoolClient } from 'pg';
import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import type { Applied, FailureAction } from '#runtime/consuming/options.ts';
import type { Move } from '#runtime/consuming/positions.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Topic } from '#schemas/topics.ts';
import type { ProjectOptions } from '../engine/project.ts';
import { markAndMove, markDirty } from './dirty.ts';
import { type Observation, observationOf } from './encode.ts';
import { Inserts } from './inserts.ts';
import { groupOf } from './live.ts';

/** Ingests observations of the log into the raw tables of one version. */

export const topics: readonly Topic[] = ['metrics'];
export const kinds: readonly string[] = ['targetmetrics', 'accountmetrics'];

export interface IngestOptions extends ProjectOptions {
  readonly client: ClickHouseClient;
  /** Called when there are days to recount, with the number of observations. */
  readonly onMarked?: (observations: number) => void;
}

/** An insert costs as much as some thousand of its rows: for each month it touches, a file a column and its flush. */
const batchEvents = 5_000;
/** Batches that are not full come no faster than this where the log can gather them. */
const spacingMs = 200;

/** The failure of the first event that cannot be stored, else the rows and the days they touch. */
const gathered = (observations: readonly Observation[]) => {
  const posts: Buffer[] = [];
  const accounts: Buffer[] = [];
  for (const { id, days, post, line } of observations) {
    if (line === null) {
      const failure: FailureAction = { action: 'park', eventId: id, reason: `no table holds the day ${days[0]}` };
      return { failure };
    }
    (post ? posts : accounts).push(line);
  }
  const touched = observations.flatMap(({ workspaceId, days, post, position }) =>
    days.map((day, at) => ({ workspaceId, day, post, position: at === 0 ? position : null })),
  );
  return { failure: null, batch: { posts, accounts }, touched };
};

/**
 * Inserts into the raw tables, then marks the days on `tx`. An answer of a network has at most `accountDays` days, and the
 * marks are recounted elsewhere: so a batch is bounded by the number of its events.
 */
export class Ingester {
  readonly #inserts: Inserts;
  readonly #pool: Pool;
  readonly #version: number;

  constructor(client: ClickHouseClient, pool: Pool, version: number) {
    this.#inserts = new Inserts(client, pool, version);
    this.#pool = pool;
    this.#version = version;
  }

  /**
   * After a crash behind the insert the position has not moved: the same rows, keyed by their events, are inserted
   * again and merge with the first ones. The days are marked with the position, so none of them stays uncounted.
   */
  async apply(tx: PoolClient, observations: readonly Observation[]): Promise<FailureAction | null> {
    const { failure, batch, touched } = gathered(observations);
    if (failure !== null) return failure;
    await this.#inserts.add(batch);
    faultPoint('analytics:after-insert');
    await markDirty(tx, this.#version, touched);
    return null;
  }

  /** Does the same without a transaction, which would hold a connection open while ClickHouse works. */
  async applyWithMove(observations: readonly Observation[], move: Move): Promise<boolean> {
    const { failure, batch, touched } = gathered(observations);
    if (failure !== null) return false;
    await this.#inserts.add(batch);
    faultPoint('analytics:after-insert');
    await markAndMove(this.#pool, this.#version, touched, move);
    return true;
  }
}

export const ingest = (version: number, options: IngestOptions): Consumer => {
  const { client, log, store, pool, codec, signal, logger, metrics, onMarked } = options;
  const ingester = new Ingester(client, pool, version);
  const applied = ({ length }: readonly Observation[]): Applied => ({
    committed: () => onMarked?.(length),
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
    shape: observationOf,
    applyInOneStatement: async (seen, move) => ((await ingester.applyWithMove(seen, move)) ? applied(seen) : null),
    apply: async (tx, seen) => (await ingester.apply(tx, seen)) ?? applied(seen),
    ...(metrics === undefined ? {} : { metrics }),
  });
};
