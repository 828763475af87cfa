import { setTimeout as delay } from 'node:timers/promises';
import type { Lane } from '#contracts/ports/log.ts';
import { stopsLane } from '../faults.ts';
import { restAfter } from '../rests.ts';
import { isStopped, type LaneState, type LaneStatus } from './lane.ts';
import type { ConsumeOptions, Shaped } from './options.ts';
import { asPosition, Fenced, type TakenLane } from './positions.ts';

/** How often the log is asked for a lane whose rest is over, until it gives it. Milliseconds. */
const askedAgainMs = 1_000;

export const backoffMs = (failures: number): number => Math.min(5_000, 50 * 2 ** Math.min(failures, 8));

/** The lanes that a member holds: which of them run, wait for a part that is away, or stopped and rest. */
export class Lanes<E extends Shaped> {
  readonly group: string;
  readonly #options: ConsumeOptions<E>;
  readonly #log: { again(lane: Lane): void; lanes(): readonly Lane[] };
  readonly #held = new Map<Lane, LaneState<E>>();

  /** @param log the member's subscription: which lanes it has, and to be asked for one anew */
  constructor(options: ConsumeOptions<E>, log: { again(lane: Lane): void; lanes(): readonly Lane[] }) {
    this.group = options.group;
    this.#options = options;
    this.#log = log;
  }

  get(lane: Lane): LaneState<E> | undefined {
    return this.#held.get(lane);
  }

  status(): ReadonlyMap<Lane, LaneStatus> {
    const now = performance.now();
    const mine = new Set(this.#log.lanes());
    return new Map(
      // One that was let go of after its rest may run in another process: here it is neither stopped nor anything else.
      [...this.#held]
        .filter(([lane, { rest }]) => rest?.over !== true || mine.has(lane))
        .map(([lane, { state, reason, position, rest }]) => {
          const restsMs = state === 'stopped' && rest !== null ? Math.max(0, rest.until - now) : null;
          return [lane, { state, reason, position, restsMs }];
        }),
    );
  }

  /** These were taken; of the others that were held, those that are not among `kept` are held no more. */
  hold(rows: readonly TakenLane[], kept: ReadonlySet<Lane>): void {
    for (const [lane, { rest }] of this.#held) {
      if (kept.has(lane)) continue;
      clearTimeout(rest?.timer);
      this.#held.delete(lane);
    }
    for (const row of rows) {
      const before = this.#held.get(row.lane);
      const { nextOffset, position } = asPosition(row);
      const same = before?.position === position;
      // A lane that rests here goes on resting, unless somebody got past the event: it would stop at the same one.
      const rests = same && before.state === 'stopped' && before.rest?.over === false;
      if (!rests) clearTimeout(before?.rest?.timer);
      this.#held.set(row.lane, {
        epoch: row.epoch,
        ahead: new Map(),
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
      const held = this.#held.get(lane);
      if (held !== undefined && !isStopped(held)) this.stop(lane, held, reason);
    }
  }

  /** The lane does nothing until its rest is over; then it is read anew from where it got to. */
  stop(lane: Lane, held: LaneState<E>, reason: string): void {
    const { restsMs, signal, metrics } = this.#options;
    metrics?.bad(this.group, lane, 'stop');
    const ms = restAfter(held.stops + 1, restsMs);
    const rest = { until: performance.now() + ms, over: false, timer: setTimeout(() => again(), ms).unref() };
    const again = (): void => {
      rest.over = true;
      if (signal.aborted) return;
      this.#log.again(lane);
      // A log that is just on its way to take the lane does not hear it, and the lane would rest for ever.
      rest.timer = setTimeout(again, askedAgainMs).unref();
    };
    Object.assign(held, { state: 'stopped', reason, stops: held.stops + 1, rest });
  }

  stoppedBy(lane: Lane, held: LaneState<E>, error: unknown): void {
    this.stop(lane, held, error instanceof Error ? error.message : String(error));
    this.#options.logger.error({ group: this.group, lane, err: error }, 'lane stopped by a fault');
  }

  stopGroup(error: Error): void {
    for (const [lane, held] of this.#held) if (!isStopped(held)) this.stoppedBy(lane, held, error);
  }

  /** False when the lane stopped over it. */
  async prepared(lane: Lane, held: LaneState<E>): Promise<boolean> {
    const { prepare, signal } = this.#options;
    if (prepare === undefined) return true;
    try {
      await this.insisting(held, prepare);
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      this.stoppedBy(lane, held, error);
      return false;
    }
  }

  async waitFor(held: LaneState<E> | null, error: unknown, failures: number): Promise<void> {
    const { logger, signal } = this.#options;
    const reason = error instanceof Error ? error.message : String(error);
    if (held !== null && !isStopped(held)) Object.assign(held, { state: 'retrying', reason });
    if (failures === 0) logger.warn({ group: this.group, reason }, 'consumer waits for a part that is away');
    await delay(backoffMs(failures), undefined, { signal });
  }

  /** Until it succeeds: what is transient is tried again for as long as the signal lets it. */
  async insisting<T>(held: LaneState<E> | null, attempt: () => Promise<T>): Promise<T> {
    const { signal } = this.#options;
    for (let failures = 0; ; failures += 1) {
      try {
        const result = await attempt();
        if (held?.state === 'retrying') Object.assign(held, { state: 'running', reason: null });
        return result;
      } catch (error) {
        if (error instanceof Fenced || signal.aborted) throw error;
        // Without its positions a member can do nothing but ask again.
        if (held !== null && stopsLane(error)) throw error;
        await this.waitFor(held, error, failures);
      }
    }
  }
}
