import { setTimeout as delay } from 'node:timers/promises';
import type { Lane } from '#contracts/ports/log.ts';
import type { StoredBytes } from '#runtime/eventing/codec.ts';
import { isInstallationFault, isTimeout, stopsLane } from '#runtime/process/faults.ts';
import type { Decoding } from './decoding.ts';
import type { Effects, Judgement } from './effects.ts';
import { isStopped, type LaneState, newest } from './lane.ts';
import { backoffMs, type Lanes } from './lanes.ts';
import type { ConsumeOptions, FailureAction, Shaped } from './options.ts';
import { maxParkedStreams, reasonOf, TooManyParked } from './parking.ts';
import { applied, applyInPieces, over, type PieceOutcome } from './pieces.ts';
import { Fenced, fenceTries, type Reached } from './positions.ts';

/** A piece that takes too long so often is too much for the database, not just unlucky. */
const maxTimeouts = 2;

/** Streams that are to be parked. */
const parkedAmong = (records: readonly StoredBytes[], left: ReadonlyMap<string, FailureAction>): number =>
  new Set(records.filter(({ id }) => left.get(id)?.action === 'park').map(({ stream }) => stream)).size;

/** Tries records until they are applied, or the event to blame is found and judged, or the lane is stopped. */
export class Attempts<E extends Shaped> {
  readonly #options: ConsumeOptions<E>;
  readonly #lanes: Lanes<E>;
  readonly #decoding: Decoding<E>;
  readonly #effects: Effects<E>;

  constructor(options: ConsumeOptions<E>, lanes: Lanes<E>, decoding: Decoding<E>, effects: Effects<E>) {
    this.#options = options;
    this.#lanes = lanes;
    this.#decoding = decoding;
    this.#effects = effects;
  }

  /** All at once as a rule. Where that fails for good, in pieces, until the event to blame stands alone and is parked. */
  async inPieces(
    lane: Lane,
    laneState: LaneState<E>,
    records: readonly StoredBytes[],
    end: Reached,
    ready: ReadonlyMap<string, E>,
  ): Promise<void> {
    const { metrics, logger } = this.#options;
    const left = new Map<string, Judgement>();
    let gotOn = false;
    /** By stream: the event that was blamed. A blame may be taken back. */
    const blamed = new Map<string, string>();
    const judged = ({ id, stream }: StoredBytes): boolean => left.has(id) || left.has(blamed.get(stream) ?? '');
    await applyInPieces({
      records,
      judged,
      attempt: async (piece, whole) => {
        if (whole && !gotOn && blamed.size > 1 && piece.every(judged)) {
          // All fail, of several streams: no event is to blame.
          this.#lanes.stoppedBy(lane, laneState, new Error([...left.values()][0]?.reason));
          return over;
        }
        // A record does not tell its offset: a piece moves the position alone, and a log that repeats records is put up with.
        const last = newest(laneState.position, piece.at(-1)?.position ?? null);
        const reached = whole ? end : { nextOffset: laneState.nextOffset, position: last };
        const attempt = () => this.#attempt(lane, laneState, piece, reached, left, ready);
        let outcome = await attempt();
        const isAlone = piece.filter((one) => !judged(one)).length === 1;
        // Two processes may have met at a unique key: in a new transaction it sees what the other one wrote. One that was
        // too slow was tried twice.
        if (outcome.kind === 'failed' && isAlone && !isTimeout(outcome.error)) outcome = await attempt();
        gotOn ||= outcome.kind === 'applied' && !piece.every(judged);
        return outcome;
      },
      blame: (record, error) => {
        const reason = reasonOf(error);
        const { id, stream, type } = record;
        left.set(id, { action: 'park', eventId: id, reason, doubtful: isTimeout(error) });
        blamed.set(stream, id);
        metrics?.bad(this.#options.group, lane, 'park');
        logger.error(
          { group: this.#options.group, lane, eventId: id, stream, type, err: error },
          'event fails alone: parked',
        );
        if (parkedAmong(records, left) <= maxParkedStreams) return true;
        this.#lanes.stopGroup(new TooManyParked(this.#options.group));
        return false;
      },
      failed: (error) => this.#lanes.stoppedBy(lane, laneState, error),
    });
  }

  /** One piece, until it is applied, the lane stopped, or it failed for good. */
  async #attempt(
    lane: Lane,
    laneState: LaneState<E>,
    records: readonly StoredBytes[],
    reached: Reached,
    left: Map<string, Judgement>,
    ready: ReadonlyMap<string, E>,
  ): Promise<PieceOutcome> {
    const { metrics, signal } = this.#options;
    const began = performance.now();
    let timeouts = 0;
    for (let tries = 0; !isStopped(laneState); tries += 1) {
      try {
        await this.#effects.settlePassing(laneState);
        const asked = records.filter((one) => !left.has(one.id));
        const events = await this.#decoding.decode(asked, ready);
        const failure = Array.isArray(events)
          ? await this.#effects.transaction(lane, laneState, records, events, left, reached)
          : events;
        if (failure === null) {
          Object.assign(laneState, reached);
          // Another lane may have stopped the group meanwhile.
          if (!isStopped(laneState)) Object.assign(laneState, { state: 'running', reason: null, stops: 0 });
          metrics?.applied(this.#options.group, lane, asked.length, performance.now() - began);
          return applied;
        }
        await this.#judge(lane, laneState, failure, records, left, tries);
      } catch (error) {
        if (error instanceof Fenced || signal.aborted) throw error;
        if (error instanceof TooManyParked) {
          this.#lanes.stopGroup(error);
        } else if (isInstallationFault(error)) {
          this.#lanes.stoppedBy(lane, laneState, error);
        } else {
          // A time-out says something of the events only where the database answers others.
          const slow = isTimeout(error) && (await this.#answers());
          if (slow) timeouts += 1;
          if (stopsLane(error)) return { kind: 'failed', error };
          if (timeouts >= maxTimeouts && (await this.#isUndone(lane, laneState, reached)))
            return { kind: 'failed', error };
          // What was blamed for being slow is innocent where the database fails in other ways, too.
          if (!slow) for (const [id, { doubtful }] of left) if (doubtful === true) left.delete(id);
          await this.#lanes.waitFor(laneState, error, tries);
        }
      }
    }
    return over;
  }

  /**
   * Whether the tries whose answers did not come have left nothing. They are fenced first: one that is still under way on
   * the server would do again what the pieces do, and move the position past theirs. False also where nobody says: the
   * same is tried again, and the position tells.
   */
  async #isUndone(lane: Lane, laneState: LaneState<E>, reached: Reached): Promise<boolean> {
    const { pool, group } = this.#options;
    const fenced = await fenceTries(pool, group, lane, laneState.epoch, reached).catch(() => null);
    if (fenced === null) return false;
    if (fenced === 'lost') throw new Fenced(group, lane);
    laneState.epoch = fenced.epoch;
    return fenced.undone;
  }

  async #answers(): Promise<boolean> {
    return this.#options.pool.query('select 1').then(
      () => true,
      () => false,
    );
  }

  async #judge(
    lane: Lane,
    laneState: LaneState<E>,
    failure: FailureAction,
    records: readonly StoredBytes[],
    left: Map<string, Judgement>,
    tries: number,
  ): Promise<void> {
    const { logger, metrics, signal } = this.#options;
    const { action, eventId, reason } = failure;
    if (action !== 'stop') metrics?.bad(this.#options.group, lane, action);
    const record = records.find((one) => one.id === eventId);
    const where = { group: this.#options.group, lane, eventId, stream: record?.stream, type: record?.type, reason };
    if (action === 'retry') {
      Object.assign(laneState, { state: 'retrying', reason });
      await delay(backoffMs(tries), undefined, { signal });
    } else if (action === 'stop' || record === undefined) {
      this.#lanes.stop(lane, laneState, reason);
      logger.error(where, 'lane stopped at an event that cannot be applied');
    } else {
      left.set(eventId, failure);
      if (parkedAmong(records, left) > maxParkedStreams) this.#lanes.stopGroup(new TooManyParked(this.#options.group));
      logger.warn(where, action === 'park' ? 'event parked' : 'event skipped');
    }
  }
}
