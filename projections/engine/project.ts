import type { Pool } from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import type { ConsumeMetrics } from '#runtime/consuming/options.ts';
import type { EventCodec } from '#runtime/eventing/codec.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { groupOf, type Projection } from '../index.ts';
import { Projector } from './apply.ts';

/** The announcement of a generation that is not renewed for this long belongs to a dead process. Seconds. */
export const announcementSeconds = 15;

export interface ProjectOptions {
  readonly log: Log;
  readonly store: EventStore;
  readonly pool: Pool;
  readonly codec: EventCodec;
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly metrics?: ConsumeMetrics;
}

/**
 * Consumes the log for one generation of a projection, live or being rebuilt. Both may commit with relaxed durability:
 * their effects come from the log alone, and the position moves in the same transaction.
 */
export const project = (
  projection: Projection,
  generation: number,
  { log, store, pool, codec, signal, logger, metrics }: ProjectOptions,
): Consumer => {
  const projector = new Projector(projection, generation);
  return consume({
    log,
    store,
    pool,
    codec,
    signal,
    logger,
    group: groupOf(projection.name, generation),
    topics: projection.topics,
    kinds: projector.kinds,
    apply: (tx, events) => projector.apply(tx, events),
    relaxed: true,
    ...(metrics === undefined ? {} : { metrics }),
  });
};
