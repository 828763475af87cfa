import { setTimeout as delay } from 'node:timers/promises';
import { backOff } from '#contracts/base/back-off.ts';
import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Lane, LanePosition, Log } from '#contracts/ports/log.ts';
import { stopsLane } from '#runtime/process/faults.ts';
import { topicOf } from '#schemas/events.ts';
import { partitionOf } from '#schemas/topics.ts';
import type { ConsumeOptions, Shaped } from './options.ts';
import { asPosition, Fenced, type Owned, type TakenLane } from './positions.ts';

/** The state of one lane that a member holds. */

export interface LaneStatus {
  readonly state: 'running' | 'retrying' | 'stopped';
  /** Why the lane does not run; null: it runs. */
  readonly reason: string | null;
  /** Commit position of the last record applied. */
  readonly position: bigint | null;
  /** Milliseconds that a stopped lane still rests before it retries; null: it does not rest. */
  readonly restsMs: number | null;
}

export interface LaneState<E> extends Owned {
  /** Decoded events of the next batch, by id. */
  decodedAhead: Map<string, E>;
  /** The pending store of a position behind records that the consumer does not want. Null: the position is stored. */
  passing: { readonly timer: NodeJS.Timeout; next: LanePosition; stored: Promise<void> | null } | null;
  nextOffset: bigint | null;
  /** Where the log ended when this member took the lane: up to there a log that was left by a restore has old records. */
  endAtStart: bigint | null;
  position: bigint | null;
  /** Resolves when the running work on the lane has ended. */
  tail: Promise<void>;
  state: LaneStatus['state'];
  reason: string | null;
  /** Stops since the lane last made progress. */
  stops: number;
  /** When a stopped lane retries. `over`: the rest has ended, and the consumer has asked the log for the lane. */
  rest: { timer: NodeJS.Timeout; readonly until: number; over: boolean } | null;
}

/** A function, because a lane may stop during each await. */
export const isStopped = ({ state }: Pick<LaneStatus, 'state'>): boolean => state === 'stopped';

/** Runs one piece of work at a time on a lane: a batch or a retry of parked events. */
export const oneAtATime = async (
  laneState: Pick<LaneState<unknown>, 'tail'>,
  work: () => Promise<void>,
): Promise<void> => {
  const tail = laneState.tail.then(work);
  laneState.tail = tail.catch(() => undefined);
  await tail;
};

export const newest = (a: bigint | null, b: bigint | null): bigint | null =>
  a === null || (b !== null && b > a) ? b : a;

const text = new TextDecoder();

const partitionKeyOf = (event: RecordedEvent): string =>
  (JSON.parse(text.decode(event.metadata)) as { partitionKey: string }).partitionKey;

/** The lane of an event; null: the log does not carry its stream. */
export const laneOf = (log: Log, event: RecordedEvent): Lane | null => {
  const topic = topicOf(event.stream);
  return topic === null ? null : log.laneOf(topic, partitionOf(partitionKeyOf(event), log.partitions));
};

/** Milliseconds that a stopped lane or relay rests: after its first stop, its second, and each later one. */
const defaultRestsMs: readonly number[] = [60_000, 300_000, 900_000];

/** @param stops number of stops in a row without progress, including this one */
export const restAfter = (stops: number, restsMs: readonly number[] = defaultRestsMs): number =>
  restsMs[Math.min(stops, restsMs.length) - 1] ?? 0;

/** Milliseconds between two requests to the log for a lane whose rest has ended. */
const askedAgainMs = 1_000;

/** Milliseconds within which a second flood of bad streams makes the group rest longer. */
const floodMs = 3_600_000;

export const backoffMs = (failures: number): number => backOff(failures, { firstMs: 50, maxMs: 5_000 });

/** The lanes that a member holds: which of them run, wait for an unavailable dependency, or have stopped and rest. */
export class Lanes<E extends Shaped> {
  readonly group: string;
  readonly #options: ConsumeOptions<E>;
  readonly #log: { again(lane: Lane): void; lanes(): readonly Lane[] };
  readonly #states = new Map<Lane, LaneState<E>>();
  /** Lanes that this member is taking, and why the taking waits. */
  readonly #taking = new Map<Lane, string>();
  /** Floods of bad streams in a row, and the instant of the last one. A success in between does not reset the count. */
  #floods = 0;
  #floodedAt = Number.NEGATIVE_INFINITY;

  /** @param log the member's subscription: names its lanes, and hands a lane out again on request */
  constructor(options: ConsumeOptions<E>, log: { again(lane: Lane): void; lanes(): readonly Lane[] }) {
    this.group = options.group;
    this.#options = options;
    this.#log = log;
  }

  get(lane: Lane): LaneState<E> | undefined {
    return this.#states.get(lane);
  }

  status(): ReadonlyMap<Lane, LaneStatus> {
    const now = performance.now();
    const mine = new Set(this.#log.lanes());
    const taking = [...this.#taking].map(([lane, reason]): [Lane, LaneStatus] => {
      return [lane, { state: 'retrying', reason, position: this.#states.get(lane)?.position ?? null, restsMs: null }];
    });
    return new Map([
      // A lane that this member released after its rest may run in another process, so this member reports no state for
      // it.
      ...[...this.#states]
        .filter(([lane, { rest }]) => rest?.over !== true || mine.has(lane))
        .map(([lane, { state, reason, position, rest }]) => {
          const restsMs = state === 'stopped' && rest !== null ? Math.max(0, rest.until - now) : null;
          return [lane, { state, reason, position, restsMs }] as const;
        }),
      ...taking,
    ]);
  }

  /**
   * Holds the taken lanes, and drops held lanes that are not among `kept`.
   * @param ends where the log ends now
   */
  hold(rows: readonly TakenLane[], kept: ReadonlySet<Lane>, ends: ReadonlyMap<Lane, bigint | null>): void {
    for (const [lane, { rest }] of this.#states) {
      if (kept.has(lane)) continue;
      clearTimeout(rest?.timer);
      this.#states.delete(lane);
    }
    for (const row of rows) {
      const before = this.#states.get(row.lane);
      const { nextOffset, position } = asPosition(row);
      const same = before?.position === position;
      // A resting lane goes on resting, or it would stop at the same event. If its position has moved, it runs.
      const rests = same && before.state === 'stopped' && before.rest?.over === false;
      if (!rests) clearTimeout(before?.rest?.timer);
      this.#states.set(row.lane, {
        epoch: row.epoch,
        decodedAhead: new Map(),
        passing: null,
        nextOffset,
        endAtStart: ends.get(row.lane) ?? null,
        position,
        ids: [],
        tail: before?.tail ?? Promise.resolve(),
        state: rests ? 'stopped' : 'running',
        reason: rests ? before.reason : null,
        stops: same ? before.stops : 0,
        rest: rests ? before.rest : null,
      });
    }
  }

  refuse(lanes: readonly Lane[], reason: string): void {
    this.#options.logger.error({ group: this.group, lanes, reason }, 'lanes stopped: the store has another history');
    for (const lane of lanes) {
      const laneState = this.#states.get(lane);
      if (laneState !== undefined && !isStopped(laneState)) this.stop(lane, laneState, reason);
    }
  }

  /** Stops the lane for a rest; afterwards the log reads the lane again from its position. */
  stop(lane: Lane, laneState: LaneState<E>, reason: string, stops = laneState.stops + 1): void {
    const { restsMs, signal, metrics } = this.#options;
    metrics?.bad(this.group, lane, 'stop');
    const ms = restAfter(stops, restsMs);
    const rest = { until: performance.now() + ms, over: false, timer: setTimeout(() => again(), ms).unref() };
    const again = (): void => {
      rest.over = true;
      if (signal.aborted) return;
      this.#log.again(lane);
      // A log that is taking the lane at this moment misses the request, and the lane would rest for ever. So the timer
      // repeats.
      rest.timer = setTimeout(again, askedAgainMs).unref();
    };
    Object.assign(laneState, { state: 'stopped', reason, stops, rest });
  }

  stoppedBy(lane: Lane, laneState: LaneState<E>, error: unknown, stops = laneState.stops + 1): void {
    this.stop(lane, laneState, error instanceof Error ? error.message : String(error), stops);
    this.#options.logger.error({ group: this.group, lane, err: error }, 'lane stopped by a fault');
  }

  /**
   * Stops all lanes instead of parking too many streams. Each rest allows ten more, so rests grow despite successes in
   * between.
   */
  stopGroup(error: Error): void {
    const running = [...this.#states].filter(([, laneState]) => !isStopped(laneState));
    if (running.length === 0) return;
    const now = performance.now();
    this.#floods = now - this.#floodedAt < floodMs ? this.#floods + 1 : 1;
    this.#floodedAt = now;
    for (const [lane, laneState] of running)
      this.stoppedBy(lane, laneState, error, Math.max(this.#floods, laneState.stops + 1));
  }

  /** False: `prepare` failed and the lane stopped. */
  async prepared(lane: Lane, laneState: LaneState<E>): Promise<boolean> {
    const { prepare, signal } = this.#options;
    if (prepare === undefined) return true;
    try {
      await this.untilDone(laneState, prepare);
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      this.stoppedBy(lane, laneState, error);
      return false;
    }
  }

  async waitFor(laneState: LaneState<E>, error: unknown, failures: number): Promise<void> {
    const reason = error instanceof Error ? error.message : String(error);
    if (!isStopped(laneState)) Object.assign(laneState, { state: 'retrying', reason });
    await this.#wait(reason, failures);
  }

  async #wait(reason: string, failures: number): Promise<void> {
    const { logger, signal } = this.#options;
    if (failures === 0) logger.warn({ group: this.group, reason }, 'dependency unavailable; the consumer retries');
    await delay(backoffMs(failures), undefined, { signal });
  }

  /** Takes lanes. Without their positions a member cannot work, so it retries after every error. */
  async taking<T>(lanes: readonly Lane[], attempt: () => Promise<T>): Promise<T> {
    const { signal } = this.#options;
    try {
      for (let failures = 0; ; failures += 1) {
        try {
          return await attempt();
        } catch (error) {
          if (signal.aborted) throw error;
          const reason = error instanceof Error ? error.message : String(error);
          for (const lane of lanes) this.#taking.set(lane, reason);
          await this.#wait(reason, failures);
        }
      }
    } finally {
      for (const lane of lanes) this.#taking.delete(lane);
    }
  }

  /** Retries transient errors until the attempt succeeds or the signal aborts. */
  async untilDone<T>(laneState: LaneState<E>, attempt: () => Promise<T>): Promise<T> {
    const { signal } = this.#options;
    for (let failures = 0; ; failures += 1) {
      try {
        const result = await attempt();
        if (laneState.state === 'retrying') Object.assign(laneState, { state: 'running', reason: null });
        return result;
      } catch (error) {
        if (error instanceof Fenced || signal.aborted) throw error;
        if (stopsLane(error)) throw error;
        await this.waitFor(laneState, error, failures);
      }
    }
  }
}
