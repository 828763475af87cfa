import type { Pool, PoolClient } from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Lane, Log } from '#contracts/ports/log.ts';
import type { DecodedEvent, EventCodec, StoredBytes } from '#runtime/eventing/codec.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import type { Move } from './positions.ts';

/** What a consumer is given, and what its effects answer. */

/**
 * What to do about an event that cannot be applied. `stop`: the lane rests, then tries again. `park`: it is set
 * aside with all later events of its stream, whose order would be broken. `skip`: it is left out. `retry`: again soon.
 */
export interface FailureAction {
  readonly action: 'retry' | 'park' | 'skip' | 'stop';
  readonly eventId: string;
  readonly reason: string;
}

/** For effects that go on in this process once they are durable. Exactly one of the two is called. */
export interface Applied {
  committed(): void;
  /** Nothing of it holds, or it is not known: another batch will tell. */
  rolledBack(): void;
}

/** tsc does not see that the transaction assigned it. */
export const asApplied = (applied: Applied | null): Applied | null => applied;

/** At the least it says which event it is. */
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
  /** Read on from here where the log lost records. Without it such a lane stops. */
  readonly store?: EventStore;
  readonly pool: Pool;
  readonly group: string;
  readonly topics: readonly string[];
  /** Stream kinds to hand over; others of the topics are passed over undecoded. Default: all. */
  readonly kinds?: readonly string[];
  /** Event types to hand over; others are passed over undecoded. Default: all. */
  readonly types?: readonly string[];
  /** Of these kinds and types, whether to hand it over; asked after `prepare`, with its whole batch. Default: all. */
  readonly wants?: (record: StoredBytes, batch: readonly StoredBytes[]) => boolean;
  /** Before each batch, outside of its transaction: makes sure that `wants` and `apply` know enough. */
  readonly prepare?: () => Promise<void>;
  readonly codec: EventCodec;
  /**
   * Of each event, what is kept until its batch is applied: a large batch that is decoded ahead should not be held as
   * objects. Pure. Needed where `E` is not the event itself.
   */
  readonly shape?: (event: DecodedEvent) => E;
  /** Effects of these events, on `tx` alone. A verdict rolls them back. Throws: see `stopsLane`. */
  apply(tx: PoolClient, events: readonly E[]): Promise<FailureAction | Applied | null>;
  /**
   * The same where one statement can do it, position included (`ops.consume_move`): it saves the round trips of a
   * transaction. `nothing`: there is no effect, and the position may be stored later. Null: these need a transaction, and
   * go to `apply`. Throws `NotMoved` when the position was not where it should be.
   */
  readonly applyInOneStatement?: (events: readonly E[], move: Move) => Promise<Applied | 'nothing' | null>;
  /** For an event that does not decode. Default: park. Not asked for one of a later version, or with a missing key. */
  readonly invalid?: (record: StoredBytes, error: Error) => Exclude<FailureAction['action'], 'retry'>;
  /**
   * The commit does not wait for the disk: a Postgres that crashes may lose the newest effects, and their position with
   * them, so they are applied again. For effects that are made from the log alone and leave the database nowhere.
   */
  readonly relaxed?: boolean;
  /** `never`: its effects leave this database, so records at or before the lane's position are dropped. */
  readonly replay?: 'never';
  readonly signal: AbortSignal;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
  readonly metrics?: ConsumeMetrics;
  readonly maxBatch?: number;
  /** How long a lane rests after its first stop, its second, and each one later. Default: a minute, 5 and 15. */
  readonly restsMs?: readonly number[];
  /** What was parked only for time-outs is tried again after this. Milliseconds; default a minute. */
  readonly doubtMs?: number;
  /** How often it is looked for parked events that are due, while there are parked ones. Default 1,000 ms. */
  readonly requestLookMs?: number;
  /** Least time between two batches that are not full, where the log gathers them; see `SubscribeOptions`. */
  readonly spacingMs?: number | (() => number);
}
