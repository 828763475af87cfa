import { type EventStore, EventStoreError } from '#contracts/ports/event-store.ts';
import type { Lane, LaneBatch, LanePosition, LogSubscription, Overrun } from '#contracts/ports/log.ts';
import type { DecodedEvent, StoredBytes } from '#runtime/eventing/codec.ts';
import { Attempts, Effects } from './attempts.ts';
import { asStored, Decoding } from './decoding.ts';
import { fillFromStore } from './from-store.ts';
import { isStopped, type LaneState, type LaneStatus, Lanes, newest, oneAtATime } from './lanes.ts';
import type { ConsumeOptions, Shaped } from './options.ts';
import { ParkedRetries } from './parked-retries.ts';
import { parkedStreams } from './parking.ts';
import { asPosition, Fenced, takeLanes } from './positions.ts';
import { idsOf, otherHistory, requireHeadAt } from './same-history.ts';

/**
 * A consumer of the log. Its law: the position moves in the transaction of the effect, fenced by an epoch that every
 * assignment raises. So a crash leaves both or neither, a repeat finds both, and a former owner writes nothing.
 */

export interface Consumer {
  /** Resolves after the signal aborts; rejects with the error from which the log cannot recover. */
  readonly done: Promise<void>;
  readonly group: string;
  /** Lanes that this member holds, including stopped ones. */
  status(): ReadonlyMap<Lane, LaneStatus>;
}

/** Keeps records that lie further than all before them, because a log may repeat records even within one batch. */
const onward = (records: readonly StoredBytes[], from: bigint | null): readonly StoredBytes[] => {
  let reached = from;
  return records.filter(({ position }) => {
    if (reached !== null && position <= reached) return false;
    reached = position;
    return true;
  });
};

const headLookEveryMs = 60_000;

class Member<E extends Shaped> implements Consumer {
  readonly group: string;
  readonly done: Promise<void>;
  readonly #options: ConsumeOptions<E>;
  readonly #subscription: LogSubscription;
  readonly #lanes: Lanes<E>;
  readonly #decoding: Decoding<E>;
  readonly #parked: ParkedRetries<E>;
  readonly #effects: Effects<E>;
  readonly #attempts: Attempts<E>;
  /** The newest head of the store that this member knows, and when it asked; monotonic milliseconds. */
  #head = -1n;
  #headAskedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ConsumeOptions<E>) {
    this.#options = options;
    this.group = options.group;
    this.#lanes = new Lanes(options, {
      again: (lane) => this.#subscription.again(lane),
      lanes: () => this.#subscription.lanes(),
    });
    this.#decoding = new Decoding(options);
    this.#parked = new ParkedRetries(options, this.#lanes, this.#decoding);
    this.#effects = new Effects(options, this.#lanes, this.#parked);
    this.#attempts = new Attempts(options, this.#lanes, this.#decoding, this.#effects);
    const { store } = options;
    this.#subscription = options.log.subscribe({
      group: options.group,
      topics: options.topics,
      signal: options.signal,
      ...(options.types === undefined ? {} : { types: options.types }),
      ...(options.maxBatch === undefined ? {} : { maxBatch: options.maxBatch }),
      ...(options.spacingMs === undefined ? {} : { spacingMs: options.spacingMs }),
      handlers: {
        assigned: (lanes) => this.#assigned(lanes),
        batch: (batch) => this.#batch(batch),
        ...(store === undefined
          ? {}
          : {
              outOfRange: (overrun: readonly Overrun[], lost: AbortSignal) => this.#outOfRange(store, overrun, lost),
            }),
      },
    });
    this.done = this.#subscription.done.catch((error: unknown) => {
      if (!options.signal.aborted) throw error;
    });
    this.done.catch(() => undefined);
  }

  status(): ReadonlyMap<Lane, LaneStatus> {
    return this.#lanes.status();
  }

  async #assigned(lanes: readonly Lane[]): Promise<readonly LanePosition[]> {
    const rows = await this.#lanes.taking(lanes, async () => {
      const taken = await takeLanes(this.#options.pool, this.group, lanes);
      // This read comes after the new epoch, so the former owner can park no further event.
      this.#parked.note(await parkedStreams(this.#options.pool, this.group));
      return taken;
    });
    const refusal = await this.#lanes.taking(lanes, async () => {
      const { store } = this.#options;
      return store === undefined ? null : otherHistory(store, `group ${this.group}`, rows);
    });
    const { log, topics } = this.#options;
    const ends = log.reset === null ? [] : await this.#lanes.taking(lanes, () => log.ends(topics));
    const kept = new Set([...lanes, ...this.#subscription.lanes()]);
    this.#lanes.hold(rows, kept, new Map(ends.map(({ lane, nextOffset }) => [lane, nextOffset])));
    if (refusal !== null) this.#lanes.refuse(lanes, refusal);
    return rows.map(asPosition);
  }

  async #batch(batch: LaneBatch): Promise<void> {
    const laneState = this.#lanes.get(batch.lane);
    if (laneState === undefined) throw new Fenced(this.group, batch.lane);
    const { records, nextOffset, position, next = [] } = batch;
    const ready = laneState.decodedAhead;
    laneState.decodedAhead = new Map();
    const page = { over: false };
    void this.#decoding.decodeAhead(laneState.decodedAhead, next, page);
    try {
      await oneAtATime(laneState, () =>
        this.#handle(batch.lane, laneState, records.map(asStored), nextOffset, position, ready),
      );
    } finally {
      page.over = true;
    }
  }

  /** Applies records and moves the lane. A stopped lane drops its records, so that it does not block other lanes. */
  async #handle(
    lane: Lane,
    laneState: LaneState<E>,
    all: readonly StoredBytes[],
    nextOffset: bigint | null,
    position: bigint | null,
    ready: ReadonlyMap<string, E> = new Map(),
  ): Promise<void> {
    if (isStopped(laneState) || !(await this.#lanes.prepared(lane, laneState))) return;
    if (!(await this.#isWithinStore(lane, laneState, all))) return;
    const { replay, relaxed } = this.#options;
    laneState.ids = idsOf(all);
    const wanted = all.filter((one) => this.#decoding.wants(one, all));
    const records = replay === 'never' ? onward(wanted, laneState.position) : wanted;
    if (all.length > 0 && wanted.length === 0 && relaxed !== true) {
      this.#effects.passOver(lane, laneState, nextOffset, position);
      return;
    }
    await this.#attempts.inPieces(
      lane,
      laneState,
      records,
      { nextOffset, position: newest(laneState.position, position) },
      ready,
    );
  }

  /**
   * Compares the records with the store's head: each batch of what the log held when this member took the lane, and one
   * batch a minute later on. False: the log has records that the store lacks, and the lane stopped.
   */
  async #isWithinStore(lane: Lane, laneState: LaneState<E>, records: readonly StoredBytes[]): Promise<boolean> {
    const { log, store, headLookMs = headLookEveryMs } = this.#options;
    const newest = records.at(-1)?.position;
    if (log.reset === null || store === undefined || newest === undefined || newest <= this.#head) return true;
    const { endAtStart, nextOffset } = laneState;
    const isOld = endAtStart !== null && (nextOffset ?? 0n) < endAtStart;
    if (!isOld && performance.now() - this.#headAskedAt < headLookMs) return true;
    try {
      this.#head = await this.#lanes.untilDone(laneState, () => requireHeadAt(store, `the log's ${lane}`, newest));
      this.#headAskedAt = performance.now();
      return true;
    } catch (error) {
      if (!(error instanceof EventStoreError) || error.code !== 'invalid_position') throw error;
      this.#lanes.refuse([lane], error.message);
      return false;
    }
  }

  async #outOfRange(
    store: EventStore,
    overrun: readonly Overrun[],
    lost: AbortSignal,
  ): Promise<readonly LanePosition[]> {
    const { log, topics, logger, signal } = this.#options;
    const lanes = overrun.map((one) => {
      const { lane } = one.from;
      const laneState = this.#lanes.get(lane);
      if (laneState === undefined) throw new Fenced(this.group, lane);
      return { ...one, lane, laneState };
    });
    // A stopped lane takes no records during its rest; afterwards the log hands it out again.
    const filled = lanes.filter(({ laneState }) => !isStopped(laneState));
    const names = filled.map(({ lane }) => lane);
    logger.warn(
      { group: this.group, lanes: names },
      'the log lost the next records of these lanes; reading them from the store',
    );
    const scan = {
      ...{ store, log, topics, lanes: this.#lanes, lost: AbortSignal.any([lost, signal]) },
      handle: this.#handle.bind(this),
    };
    await fillFromStore(scan, filled);
    return lanes.map(({ lane, laneState, firstOffset }) => ({
      lane,
      nextOffset: firstOffset,
      position: laneState.position,
    }));
  }
}

/** Starts consuming; see `ConsumeOptions`. */
export const consume = <E extends Shaped = DecodedEvent>(options: ConsumeOptions<E>): Consumer => new Member(options);
