import type { Pool, PoolClient } from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Lane, Log } from '#contracts/ports/log.ts';
import type { DecodedEvent, EventCodec, StoredBytes } from '#runtime/eventing/codec.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import type { Move } from './positions.ts';

/** The options of a consumer, and the results of its effects. */

/**
 * The action for an event that cannot be applied. `stop`: the lane rests, then retries. `park`: the consumer sets the
 * event aside with all later events of its stream, to keep their order. `skip`: the consumer leaves the event out.
 * `retry`: the consumer retries soon.
 */
export interface FailureAction {
  readonly action: 'retry' | 'park' | 'skip' | 'stop';
  readonly eventId: string;
  readonly reason: string;
}

/** For effects that continue in this process once they are durable. The consumer calls exactly one of the two. */
export interface Applied {
  committed(): void;
  /** The transaction failed, or its result is unknown; a later batch shows the result. */
  rolledBack(): void;
}

/** tsc does not see that the transaction's callback assigns the variable. */
export const asApplied = (applied: Applied | null): Applied | null => applied;

/** The result of `shape` keeps at least the event's id. */
export interface Shaped {
  readonly id: string;
}

export interface ConsumeMetrics {
  applied(group: string, lane: Lane, events: number, milliseconds: number): void;
  bad(group: string, lane: Lane, action: FailureAction['action']): void;
}

/** @typeParam E what `shape` makes of an event */
export interface ConsumeOptions<E extends Shaped = DecodedEvent> {
  readonly log: Log;
  /** If the log has lost records, the consumer reads them here. Without a store such a lane stops. */
  readonly store?: EventStore;
  readonly pool: Pool;
  readonly group: string;
  readonly topics: readonly string[];
  /** Stream kinds to hand over; others of the topics are passed over undecoded. Default: all. */
  readonly kinds?: readonly string[];
  /** Event types to hand over; others are passed over undecoded. Default: all. */
  readonly types?: readonly string[];
  /** Whether to hand over a record of these kinds and types; called after `prepare`. Default: all. */
  readonly wants?: (record: StoredBytes, batch: readonly StoredBytes[]) => boolean;
  /** Runs before each batch, outside of its transaction: loads what `wants` and `apply` need. */
  readonly prepare?: () => Promise<void>;
  readonly codec: EventCodec;
  /**
   * Reduces an event to the value kept until its batch is applied, so that a large batch decoded ahead takes less
   * memory. Pure. Required if `E` is not the event itself.
   */
  readonly shape?: (event: DecodedEvent) => E;
  /** Effects of these events, on `tx` alone. A verdict rolls them back. Throws: see `stopsLane`. */
  apply(tx: PoolClient, events: readonly E[]): Promise<FailureAction | Applied | null>;
  /**
   * The same where one statement can do it, position included (`ops.consume_move`): it saves the round trips of a
   * transaction. `nothing`: there is no effect, and the position may be stored later. Null: these need a transaction,
   * and go to `apply`. Throws `NotMoved` when the position was not where it should be.
   */
  readonly applyInOneStatement?: (events: readonly E[], move: Move) => Promise<Applied | 'nothing' | null>;
  /**
   * Chooses the action for an event that does not decode. Default: park. Not called for a later version or a missing
   * key.
   */
  readonly invalid?: (record: StoredBytes, error: Error) => Exclude<FailureAction['action'], 'retry'>;
  /**
   * The commit does not wait for the disk. If Postgres crashes, it may lose the newest effects together with their
   * position, and the consumer applies them again. Only for effects that follow from the log alone and stay in this
   * database.
   */
  readonly relaxed?: boolean;
  /** `never`: its effects leave this database, so records at or before the lane's position are dropped. */
  readonly replay?: 'never';
  readonly signal: AbortSignal;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
  readonly metrics?: ConsumeMetrics;
  readonly maxBatch?: number;
  /**
   * Milliseconds that a lane rests after its first stop, its second, and each later one. Default: 1, 5 and 15 minutes.
   */
  readonly restsMs?: readonly number[];
  /** Milliseconds after which events parked only for time-outs are retried. Default: a minute. */
  readonly doubtMs?: number;
  /** Milliseconds after which a running lane compares its records with the store's head again. Default 60,000. */
  readonly headLookMs?: number;
  /** Milliseconds between two searches for due parked events while events are parked. Default 1,000. */
  readonly requestLookMs?: number;
  /** Least time between two batches that are not full, if the log gathers them; see `SubscribeOptions`. */
  readonly spacingMs?: number | (() => number);
}
