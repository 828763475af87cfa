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
export const project = (projection: Projection, generation: number, options: ProjectOptions): Consumer => {
  const projector = new Projector(projection, generation);
  return consumeFor(projector, projection, generation, options, (tx, events) => projector.apply(tx, events));
};

/**
 * The same for a consumer that announces nothing: a process may drop the tables beside it, and applies nothing to them
 * then. A drop moves the epoch of the lanes, and a batch moves its position before its effects: so no drop comes between
 * the question and the effects.
 */
export const projectUnannounced = (projection: Projection, generation: number, options: ProjectOptions): Consumer => {
  const projector = new Projector(projection, generation);
  return consumeFor(projector, projection, generation, options, async (tx, events) => {
    const { rowCount } = await tx.query({
      name: 'projection-shown',
      text: 'select 1 from ops.projections where name = $1 and shape = $2 and live = $3',
      values: [projection.name, projection.shape, generation],
    });
    return rowCount === 0 ? null : projector.apply(tx, events);
  });
};

const consumeFor = (
  { kinds }: Projector,
  { name, topics }: Projection,
  generation: number,
  { log, store, pool, codec, signal, logger, metrics }: ProjectOptions,
  apply: Projector['apply'],
): Consumer =>
  consume({
    log,
    store,
    pool,
    codec,
    signal,
    logger,
    group: groupOf(name, generation),
    topics,
    kinds,
    apply,
    relaxed: true,
    ...(metrics === undefined ? {} : { metrics }),
  });
