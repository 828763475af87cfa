/**
 * The log: the store's events by topic and partition, for consumers that keep their own position. Two adapters: Kafka,
 * and the Postgres event table read by position. `log.suite.ts` proves them. A log may repeat older records (a relay
 * that crashed, a zombie); it never drops or reorders records of one key.
 */

/** An event in the log. Value and metadata are the stored bytes, unchanged. */
export interface LogRecord {
  readonly topic: string;
  readonly partition: number;
  /** Key of order: records of one key keep the order of the store. */
  readonly key: string;
  readonly stream: string;
  readonly id: string;
  readonly type: string;
  readonly revision: bigint;
  readonly position: bigint;
  /** The instant at which the store recorded it, ISO 8601. */
  readonly time: string;
  readonly value: Uint8Array;
  readonly metadata: Uint8Array;
}

/**
 * The unit for which a consumer keeps a position. Kafka: one per topic partition, named `<topic>-<partition>`. The
 * embedded log: a single lane `*` that carries every topic, so that idle partitions cost nothing.
 */
export type Lane = string;

export interface LanePosition {
  readonly lane: Lane;
  /** Where to read on: Kafka's next offset; for the embedded log the last position read. Null = from the start. */
  readonly nextOffset: bigint | null;
  /** Commit position of the last record applied, null when none was. */
  readonly position: bigint | null;
}

export interface LaneBatch {
  readonly lane: Lane;
  readonly records: readonly LogRecord[];
  /**
   * To be stored with the effect of these records, in one transaction. Neither ever steps back on a lane. A batch
   * without records only moves `nextOffset`: the embedded log skipped events of other topics.
   */
  readonly nextOffset: bigint;
  readonly position: bigint | null;
  /**
   * Records of the next batch that have arrived, or will in a moment, so that a handler may prepare for it; the batch
   * is still delivered in its turn. A log of many lanes omits it: there, one lane works while another waits.
   */
  readonly next?: readonly LogRecord[] | Promise<readonly LogRecord[]>;
}

/** A lane of which the log has deleted unread records. */
export interface Overrun {
  readonly from: LanePosition;
  /** The first offset that the log still has. */
  readonly firstOffset: bigint;
}

export interface ConsumerHandlers {
  /**
   * Called when this member receives lanes, before any record of them, and for a lane that is read `again`. Returns
   * where to read on. The implementation bumps the lane's epoch here, so that the former owner is fenced.
   */
  assigned(lanes: readonly Lane[]): Promise<readonly LanePosition[]>;
  /** Applies a batch and stores its position in one transaction. An error with the code `fenced` ends this member's hold on the lane. */
  batch(batch: LaneBatch): Promise<void>;
  /**
   * The log lacks the next records of these lanes (retention deleted them, or the log was lost and recreated). Applies
   * the events after each lane's `from.position` from the store, up to a head taken now, and returns where to read on,
   * as a rule `firstOffset`: every record from there on is repeated or new. Called once for all such lanes, before any
   * further record of theirs; other lanes go on meanwhile. Without this handler the subscription stops with `LogError
   * fatal`.
   * @param lost aborts when another member receives the lanes; the result is then ignored
   */
  outOfRange?(lanes: readonly Overrun[], lost: AbortSignal): Promise<readonly LanePosition[]>;
}

export interface LogSubscription {
  /** Resolves when the signal ended the subscription; rejects with the error that stopped it. */
  readonly done: Promise<void>;
  /** Lanes that this member owns now. */
  lanes(): readonly Lane[];
  /**
   * Reads a lane of this member again from its stored position: calls `assigned` for it once more. For a consumer that
   * took records without applying them. Does nothing where the member does not own the lane: a new owner reads its
   * position anyway.
   */
  again(lane: Lane): void;
}

export interface SubscribeOptions {
  /** Members of one group share the lanes. */
  readonly group: string;
  readonly topics: readonly string[];
  readonly handlers: ConsumerHandlers;
  readonly signal: AbortSignal;
  /**
   * Types of the events that the consumer applies. A log that can leave out records of other types may do so, except for
   * the last one of each page that it reads, by which the position moves. Default: all.
   */
  readonly types?: readonly string[];
  /** Most records of one batch. Default 500. */
  readonly maxBatch?: number;
  /**
   * Shortest time between the starts of two batches that are not full, milliseconds: records in quick succession share
   * transactions. 0 for a consumer on which a caller waits; a function is called before each pause. A log that gathers
   * by itself (Kafka) ignores it.
   */
  readonly spacingMs?: number | (() => number);
}

export interface Log {
  readonly partitions: number;
  subscribe(options: SubscribeOptions): LogSubscription;
  /** The lane that carries a topic's partition. */
  laneOf(topic: string, partition: number): Lane;
  /** Present end of each lane of these topics: the next offset to be written (embedded: head position). */
  ends(topics: readonly string[]): Promise<readonly LanePosition[]>;
  /**
   * Deletes all topics with their records; the next process that opens the log makes them again, empty. Null: the log is
   * the store itself, so it holds what the store holds. @returns the names of the deleted topics
   */
  readonly reset: (() => Promise<readonly string[]>) | null;
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** The log that the relay writes to. The embedded log has none: the event table is the log. */
export interface LogWriter {
  /**
   * Writes the batch in order and resolves when all of it is acknowledged. One call at a time per writer.
   * @throws LogError `unavailable` after its own retries; the same batch may be sent again
   */
  send(records: readonly LogRecord[]): Promise<void>;
  /**
   * The last record of each lane that has one, the newest first. Takes seconds.
   * @throws LogError `unavailable`
   */
  lastRecords(): Promise<readonly Pick<LogRecord, 'position' | 'id' | 'time'>[]>;
  close(): Promise<void>;
}

export type LogErrorCode = 'unavailable' | 'partition_mismatch' | 'fenced' | 'fatal';

export class LogError extends Error {
  readonly code: LogErrorCode;
  constructor(code: LogErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'LogError';
    this.code = code;
  }
}
