/**
 * The log: the store's events by topic and partition, for consumers that keep their own position.
 * Two adapters: Kafka, and the Postgres event table read by position. Proved by `log.suite.ts`.
 * A log may repeat older records (a relay that crashed, a zombie); it never drops or reorders one inside a key.
 */

/** A fact as it travels. Value and metadata are the stored bytes, unchanged. */
export interface LogRecord {
  readonly topic: string;
  readonly partition: number;
  /** Key of order: records of one key are in the order of the store. */
  readonly key: string;
  readonly stream: string;
  readonly id: string;
  readonly type: string;
  readonly revision: bigint;
  readonly position: bigint;
  /** Instant the store recorded it, ISO 8601. */
  readonly time: string;
  readonly value: Uint8Array;
  readonly metadata: Uint8Array;
}

/**
 * The unit a consumer keeps a position for. Kafka: one per topic partition, named `<topic>-<partition>`.
 * The embedded log: a single lane `*` that carries every topic, so idle partitions cost nothing.
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
   * To be stored with the effect of these records, in one transaction. Both never step back on a lane. A batch without
   * records only moves `nextOffset`: the embedded log passed over other topics' events.
   */
  readonly nextOffset: bigint;
  readonly position: bigint | null;
  /**
   * What is at hand of the batch after this one, or will be in a moment, so that a handler may get ready for it; it is
   * still handed over in its turn. A log of many lanes leaves it out: there, one lane's work fills the other's pauses.
   */
  readonly next?: readonly LogRecord[] | Promise<readonly LogRecord[]>;
}

/** A lane that the log has overrun. */
export interface Overrun {
  readonly from: LanePosition;
  /** The first offset that the log has of it. */
  readonly firstOffset: bigint;
}

export interface ConsumerHandlers {
  /**
   * Called when lanes are given to this member, before any record of them, and for a lane that is to be read `again`.
   * Returns where to read on. The implementation bumps the lane's epoch here, so that the member who had it before is fenced.
   */
  assigned(lanes: readonly Lane[]): Promise<readonly LanePosition[]>;
  /** Applies a batch and its position in one transaction. A `Fenced` error ends this member's hold on the lane. */
  batch(batch: LaneBatch): Promise<void>;
  /**
   * The log does not have what these lanes should read next (retention overran it, or the log was lost and began anew).
   * Applies from the store what lies after each one's `from.position`, up to a head taken now, and returns where to read
   * on, as a rule `firstOffset`: every record from there on is repeated or new. Called once for all such lanes, before any
   * further record of theirs; other lanes flow meanwhile. Without this handler the subscription stops with `LogError fatal`.
   * @param lost aborts when the lanes are given to another member; what is returned then is not looked at
   */
  outOfRange?(lanes: readonly Overrun[], lost: AbortSignal): Promise<readonly LanePosition[]>;
}

export interface LogSubscription {
  /** Resolves when the subscription ended by its signal; rejects with the error that stopped it. */
  readonly done: Promise<void>;
  /** Lanes this member holds now. */
  lanes(): readonly Lane[];
  /**
   * Reads a lane of this member anew from its stored position: `assigned` is asked for it once more. For a consumer that
   * took records without applying them. Nothing happens where the lane is not held: then it is assigned anyway.
   */
  again(lane: Lane): void;
}

export interface SubscribeOptions {
  /** Members of one group share the lanes. */
  readonly group: string;
  readonly topics: readonly string[];
  readonly handlers: ConsumerHandlers;
  readonly signal: AbortSignal;
  /** Most records of one batch. Default 500. */
  readonly maxBatch?: number;
  /**
   * Least time between the beginnings of two batches that are not full, milliseconds: what comes in quick succession
   * shares transactions. 0 for a consumer whom somebody waits for; asked before each pause where it is a function. A log
   * that gathers by itself (Kafka) pays no heed.
   */
  readonly spacingMs?: number | (() => number);
}

export interface Log {
  readonly partitions: number;
  subscribe(options: SubscribeOptions): LogSubscription;
  /** The lane that carries a topic's partition. */
  laneOf(topic: string, partition: number): Lane;
  /** End of each lane of these topics as of now: the next offset that will be written (embedded: head position). */
  ends(topics: readonly string[]): Promise<readonly LanePosition[]>;
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** What the relay writes to. The embedded log has none: the event table is the log. */
export interface LogWriter {
  /**
   * Writes the batch in order and resolves when all of it is acknowledged. One call at a time per writer.
   * @throws LogError `unavailable` after its own retries; the same batch may be sent again.
   */
  send(records: readonly LogRecord[]): Promise<void>;
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
