import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Lane } from '#contracts/ports/log.ts';
import { faultPoint } from '../fault-point.ts';
import { stopsLane } from '../faults.ts';
import { parkAgain, parkedOf, parkedStreams, reasonOf, unpark, wantedAgain } from '../parking.ts';
import { inTransaction } from '../transactions.ts';
import type { Decoding } from './decoding.ts';
import { inTurn, isStopped, type LaneState, laneOf } from './lane.ts';
import type { Lanes } from './lanes.ts';
import { type Applied, asApplied, type ConsumeOptions, type Shaped } from './options.ts';
import { requireOwn } from './positions.ts';

/** How often requests of an operator are looked for, while something is parked. Milliseconds. */
const requestLookMs = 1_000;

/** Parked events applied in one go: batches of the lane come in between. */
const retriedAtOnce = 100;

/** Streams that a member has parked events of, and what an operator wants to have tried again of them. */
export class ParkedAgain<E extends Shaped> {
  readonly #options: ConsumeOptions<E>;
  readonly #lanes: Lanes<E>;
  readonly #decoding: Decoding<E>;
  /** Streams that may have parked events, and when that was last known. Others take the short way. */
  readonly #parked = new Map<string, number>();
  #looking: NodeJS.Timeout | null = null;

  constructor(options: ConsumeOptions<E>, lanes: Lanes<E>, decoding: Decoding<E>) {
    this.#options = options;
    this.#lanes = lanes;
    this.#decoding = decoding;
  }

  has(stream: string): boolean {
    return this.#parked.has(stream);
  }

  note(streams: readonly string[]): void {
    const now = performance.now();
    for (const stream of streams) this.#parked.set(stream, now);
    if (this.#parked.size === 0 || this.#looking !== null || this.#options.signal.aborted) return;
    const { requestLookMs: everyMs = requestLookMs } = this.#options;
    this.#looking = setTimeout(() => void this.#lookAtRequests(), everyMs).unref();
  }

  /** Tries again what an operator wants to have tried again, and forgets streams that nothing is parked of any more. */
  async #lookAtRequests(): Promise<void> {
    const { pool, store, logger, signal } = this.#options;
    try {
      const requests = store === undefined ? [] : await wantedAgain(pool, this.#options.group);
      for (const { stream, first } of requests) {
        await this.#tryAgain(stream, first).catch((error: unknown) => {
          if (signal.aborted) throw error;
          logger.warn({ group: this.#options.group, stream, err: error }, 'a parked stream is tried again later');
        });
      }
      const asked = performance.now();
      const still = new Set(await parkedStreams(pool, this.#options.group));
      // One that was parked since the question may not be in the answer.
      for (const [stream, at] of this.#parked) if (at < asked && !still.has(stream)) this.#parked.delete(stream);
    } catch (error) {
      if (!signal.aborted)
        logger.warn({ group: this.#options.group, err: error }, 'parked events are looked at again later');
    } finally {
      this.#looking = null;
      this.note([]);
    }
  }

  /** In the order of revisions, a few at a time, in the lane's turn. Another member's stream is left to that one. */
  async #tryAgain(stream: string, first: bigint): Promise<void> {
    const { pool, store, log, signal } = this.#options;
    const [event] = (await store?.read(stream, { from: first, limit: 1 })) ?? [];
    let lane: Lane | null;
    try {
      if (event === undefined) throw new Error('the store does not have it');
      lane = laneOf(log, event);
    } catch (error) {
      // No lane to try it on: whoever asked for it is told why.
      await parkAgain(pool, this.#options.group, stream, first, reasonOf(error));
      return;
    }
    if (lane === null) return;
    for (let more = true; more && !signal.aborted; ) {
      const held = this.#lanes.get(lane);
      if (held === undefined || isStopped(held)) return;
      more = false;
      await inTurn(held, async () => {
        const revisions = await parkedOf(pool, this.#options.group, stream, retriedAtOnce);
        if (revisions.length > 0 && (await this.#lanes.prepared(lane, held))) {
          more = await this.#applyParked(lane, held, stream, revisions);
        }
      });
    }
  }

  /** One transaction an event: what fails is known, and all before it holds. False where the stream stays parked. */
  async #applyParked(lane: Lane, held: LaneState<E>, stream: string, revisions: readonly bigint[]): Promise<boolean> {
    const { pool, store, logger } = this.#options;
    for (const revision of revisions) {
      const [event] = (await store?.read(stream, { from: revision, limit: 1 })) ?? [];
      const reason =
        event === undefined || event.revision !== revision
          ? 'the store does not have it'
          : await this.#applyOneParked(lane, held, event).catch((error: unknown) => {
              if (!stopsLane(error)) throw error;
              return reasonOf(error);
            });
      if (reason === null) continue;
      await parkAgain(pool, this.#options.group, stream, revision, reason);
      logger.warn(
        { group: this.#options.group, lane, stream, revision: String(revision), reason },
        'event stays parked',
      );
      return false;
    }
    logger.info({ group: this.#options.group, lane, stream, events: revisions.length }, 'parked events applied');
    return true;
  }

  /**
   * The event's effect and the end of its parking are one transaction, behind the lane's epoch: if we die before, it is
   * parked and still wanted; after, it is applied. Answers why it cannot be applied, null when it was.
   */
  async #applyOneParked(lane: Lane, held: LaneState<E>, event: RecordedEvent): Promise<string | null> {
    const { pool, apply } = this.#options;
    const shaped = await this.#decoding.shaped(event);
    let made: Applied | null = null;
    try {
      const verdict = await inTransaction(pool, async (tx) => {
        await requireOwn(tx, this.#options.group, lane, held, 'for update');
        const effect = await apply(tx, [shaped]);
        if (effect !== null && 'action' in effect) return { commit: false, result: effect };
        made = effect;
        await unpark(tx, this.#options.group, event.stream, [event.revision]);
        faultPoint('consume:before-unpark');
        return { commit: true, result: null };
      });
      asApplied(made)?.committed();
      return verdict === null ? null : verdict.reason;
    } catch (error) {
      asApplied(made)?.rolledBack();
      throw error;
    }
  }
}
