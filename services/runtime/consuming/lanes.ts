import { setTimeout as delay } from 'node:timers/promises';
import type { Lane } from '#contracts/ports/log.ts';
import { stopsLane } from '#runtime/process/faults.ts';
import { backOff } from '#runtime/work/back-off.ts';
import { isStopped, type LaneState, type LaneStatus } from './lane.ts';
import type { ConsumeOptions, Shaped } from './options.ts';
import { asPosition, Fenced, type TakenLane } from './positions.ts';
import { restAfter } from './rests.ts';

/** How often the log is asked for a lane whose rest is over, until it gives it. Milliseconds. */
const askedAgainMs = 1_000;

/** Within this time of the last one a group that would park too many streams rests longer. Milliseconds. */
const floodMs = 3_600_000;

export const backoffMs = (failures: number): number => backOff(failures, { firstMs: 50, maxMs: 5_000 });

/** The lanes that a member holds: which of them run, wait for a part that is away, or stopped and rest. */
export class Lanes<E extends Shaped> {
  readonly group: string;
  readonly #options: ConsumeOptions<E>;
  readonly #log: { again(lane: Lane): void; lanes(): readonly Lane[] };
  readonly #states = new Map<Lane, LaneState<E>>();
  /** Lanes that are being taken, and which part that waits for. */
  readonly #taking = new Map<Lane, string>();
  /** Times that too many streams would have been parked, and the last one. What succeeds in between does not end that. */
  #floods = 0;
  #floodedAt = Number.NEGATIVE_INFINITY;

  /** @param log the member's subscription: which lanes it has, and to be asked for one anew */
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
      // One that was let go of after its rest may run in another process: here it is neither stopped nor anything else.
      ...[...this.#states]
        .filter(([lane, { rest }]) => rest?.over !== true || mine.has(lane))
        .map(([lane, { state, reason, position, rest }]) => {
          const restsMs = state === 'stopped' && rest !== null ? Math.max(0, rest.until - now) : null;
          return [lane, { state, reason, position, restsMs }] as const;
        }),
      ...taking,
    ]);
  }

  /** These were taken; of the others that were held, those that are not among `kept` are held no more. */
  hold(rows: readonly TakenLane[], kept: ReadonlySet<Lane>): void {
    for (const [lane, { rest }] of this.#states) {
      if (kept.has(lane)) continue;
      clearTimeout(rest?.timer);
      this.#states.delete(lane);
    }
    for (const row of rows) {
      const before = this.#states.get(row.lane);
      const { nextOffset, position } = asPosition(row);
      const same = before?.position === position;
      // A lane that rests here goes on resting, unless somebody got past the event: it would stop at the same one.
      const rests = same && before.state === 'stopped' && before.rest?.over === false;
      if (!rests) clearTimeout(before?.rest?.timer);
      this.#states.set(row.lane, {
        epoch: row.epoch,
        decodedAhead: new Map(),
        passing: null,
        nextOffset,
        position,
        ids: [],
        turn: before?.turn ?? Promise.resolve(),
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

  /** The lane does nothing until its rest is over; then it is read anew from where it got to. */
  stop(lane: Lane, laneState: LaneState<E>, reason: string, stops = laneState.stops + 1): void {
    const { restsMs, signal, metrics } = this.#options;
    metrics?.bad(this.group, lane, 'stop');
    const ms = restAfter(stops, restsMs);
    const rest = { until: performance.now() + ms, over: false, timer: setTimeout(() => again(), ms).unref() };
    const again = (): void => {
      rest.over = true;
      if (signal.aborted) return;
      this.#log.again(lane);
      // A log that is just on its way to take the lane does not hear it, and the lane would rest for ever.
      rest.timer = setTimeout(again, askedAgainMs).unref();
    };
    Object.assign(laneState, { state: 'stopped', reason, stops, rest });
  }

  stoppedBy(lane: Lane, laneState: LaneState<E>, error: unknown, stops = laneState.stops + 1): void {
    this.stop(lane, laneState, error instanceof Error ? error.message : String(error), stops);
    this.#options.logger.error({ group: this.group, lane, err: error }, 'lane stopped by a fault');
  }

  /** Too many streams would be parked. After each rest ten more may be, so the rests grow whatever succeeds in between. */
  stopGroup(error: Error): void {
    const running = [...this.#states].filter(([, laneState]) => !isStopped(laneState));
    if (running.length === 0) return;
    const now = performance.now();
    this.#floods = now - this.#floodedAt < floodMs ? this.#floods + 1 : 1;
    this.#floodedAt = now;
    for (const [lane, laneState] of running)
      this.stoppedBy(lane, laneState, error, Math.max(this.#floods, laneState.stops + 1));
  }

  /** False when the lane stopped over it. */
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
    if (failures === 0) logger.warn({ group: this.group, reason }, 'consumer waits for a part that is away');
    await delay(backoffMs(failures), undefined, { signal });
  }

  /** For lanes that are not held yet: without their positions a member can do nothing but ask again, whatever fails. */
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

  /** Until it succeeds: what is transient is tried again for as long as the signal lets it. */
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
