import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Lane } from '#contracts/ports/log.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { isInstallationFault, isTimeout, stopsLane } from '#runtime/process/faults.ts';
import type { Decoding } from './decoding.ts';
import { isStopped, type LaneState, laneOf, oneAtATime } from './lane.ts';
import type { Lanes } from './lanes.ts';
import { type Applied, asApplied, type ConsumeOptions, type Shaped } from './options.ts';
import {
  keepParked,
  noteReason,
  parkedFrom,
  type StreamToRetry,
  streamsPerLook,
  streamsToRetry,
  unpark,
} from './parked-requests.ts';
import { doubtMs, parkedStreams, reasonOf } from './parking.ts';
import { Fenced, requireOwn } from './positions.ts';

/** How often it is looked for what is due, while something is parked. Milliseconds. */
const requestLookMs = 1_000;
/** A look takes no more than one part in so many of the time, however many streams are parked. */
const looksShare = 20;

/** Parked events applied in one go: batches of the lane come in between. */
const retriedAtOnce = 100;
/** And so often in one look: then the next stream has its turn. */
const piecesInARow = 10;

/** What came of a piece: applied; or stream stays parked; or an operator changed what is parked meanwhile. */
type PieceOutcome =
  | { readonly kind: 'applied' }
  | { readonly kind: 'changed' }
  | { readonly kind: 'stays'; readonly reason: string; readonly doubtful?: boolean };

/** How a stream stays parked: `slow` where that was found out by waiting for the database. */
type Stays = 'slow' | 'nothing';
/** What there is to do of a stream after a look. */
type Left = 'more' | Stays;

/** Streams that a member has parked events of, and what is to be tried again of them. */
export class ParkedRetries<E extends Shaped> {
  readonly #options: ConsumeOptions<E>;
  readonly #lanes: Lanes<E>;
  readonly #decoding: Decoding<E>;
  /** Streams that may have parked events, and when that was last known. Others take the short way. */
  readonly #parked = new Map<string, number>();
  #looking: NodeJS.Timeout | null = null;
  /** The last stream of a look that found no end: the next one begins behind it, so that none waits for others for ever. */
  #lookedTo = '';
  #restMs: number;

  constructor(options: ConsumeOptions<E>, lanes: Lanes<E>, decoding: Decoding<E>) {
    this.#options = options;
    this.#lanes = lanes;
    this.#decoding = decoding;
    this.#restMs = options.requestLookMs ?? requestLookMs;
  }

  has(stream: string): boolean {
    return this.#parked.has(stream);
  }

  note(streams: readonly string[]): void {
    const now = performance.now();
    for (const stream of streams) this.#parked.set(stream, now);
    if (this.#parked.size === 0 || this.#looking !== null || this.#options.signal.aborted) return;
    this.#looking = setTimeout(() => void this.#lookAtRequests(), this.#restMs).unref();
  }

  /** Tries again what is to be tried again by now, and forgets streams that nothing is parked of any more. */
  async #lookAtRequests(): Promise<void> {
    const { pool, store, logger, signal, group, requestLookMs: everyMs = requestLookMs } = this.#options;
    let more = false;
    let slowMs = 0;
    try {
      const wanted = store === undefined ? [] : await streamsToRetry(pool, group, this.#lookedTo);
      this.#lookedTo = wanted.length < streamsPerLook ? '' : (wanted.at(-1)?.stream ?? '');
      for (const one of wanted) {
        const began = performance.now();
        const left = await this.#tryAgain(one).catch((error: unknown) => {
          if (signal.aborted) throw error;
          logger.warn({ group, stream: one.stream, err: error }, 'a parked stream is tried again later');
          if (error instanceof Fenced) return 'nothing';
          return noteReason(pool, group, one.stream, reasonOf(error)).then(
            () => 'nothing' as const,
            () => 'nothing' as const,
          );
        });
        more ||= left === 'more';
        if (left !== 'slow') continue;
        // Its lane stood still meanwhile: it gets as much time before the next one may do the same.
        slowMs = performance.now() - began;
        this.#lookedTo = one.stream;
        break;
      }
      const asked = performance.now();
      const still = new Set(await parkedStreams(pool, group));
      // One that was parked since the question may not be in the answer.
      for (const [stream, at] of this.#parked) if (at < asked && !still.has(stream)) this.#parked.delete(stream);
      this.#restMs = more && slowMs === 0 ? 0 : Math.max(everyMs, slowMs, looksShare * (performance.now() - asked));
    } catch (error) {
      if (!signal.aborted) logger.warn({ group, err: error }, 'parked events are looked at again later');
      this.#restMs = everyMs;
    } finally {
      this.#looking = null;
      this.note([]);
    }
  }

  /**
   * In the order of revisions, a few at a time, in the lane's turn. Another member's stream is left to that one. The
   * store is read before: the lane would stand still while it does not answer.
   */
  async #tryAgain({ stream, first }: StreamToRetry): Promise<Left> {
    const { pool, store, log, signal, group } = this.#options;
    const [event] = (await store?.read(stream, { from: first, limit: 1 })) ?? [];
    let lane: Lane | null;
    try {
      if (event === undefined) throw new Error('the store does not have it');
      lane = laneOf(log, event);
    } catch (error) {
      // No lane to try it on: whoever asked for it is told why.
      await keepParked(pool, group, stream, first, reasonOf(error));
      return 'nothing';
    }
    if (lane === null) return 'nothing';
    let from: bigint | Stays = first;
    for (let pieces = 0; typeof from === 'bigint' && pieces < piecesInARow && !signal.aborted; pieces += 1) {
      const laneState = this.#lanes.get(lane);
      if (laneState === undefined || isStopped(laneState)) return 'nothing';
      const revisions: readonly bigint[] = await parkedFrom(pool, group, { stream, first: from }, retriedAtOnce);
      const [next] = revisions;
      from = 'nothing';
      if (next === undefined) break;
      const events = await this.#stored(stream, revisions);
      await oneAtATime(laneState, async () => {
        if (await this.#lanes.prepared(lane, laneState))
          from = await this.#applyParked(lane, laneState, stream, next, events);
      });
    }
    return typeof from === 'bigint' ? 'more' : from;
  }

  /** Answers from which revision on it is to go on, or how the stream stays parked. */
  async #applyParked(
    lane: Lane,
    laneState: LaneState<E>,
    stream: string,
    first: bigint,
    events: readonly RecordedEvent[],
  ): Promise<bigint | Stays> {
    const { logger, group } = this.#options;
    const last = events.at(-1);
    if (last === undefined) {
      await this.#parkAgain(lane, laneState, stream, first, { reason: 'the store does not have it' });
      return 'nothing';
    }
    const whole = await this.#tryPiece(lane, laneState, events);
    if (whole.kind === 'changed') return first;
    if (whole.kind === 'applied') {
      logger.info({ group, lane, stream, events: events.length }, 'parked events applied');
      return last.revision + 1n;
    }
    // One by one: what fails is known then, and all before it holds. One that stands alone is tried once more, but not one
    // that was too slow.
    for (const event of events) {
      const isKnown = events.length === 1 && whole.doubtful === true;
      const one = isKnown ? whole : await this.#tryPiece(lane, laneState, [event]);
      if (one.kind === 'changed') return event.revision;
      if (one.kind === 'applied') continue;
      await this.#parkAgain(lane, laneState, stream, event.revision, one);
      return one.doubtful === true ? 'slow' : 'nothing';
    }
    return last.revision + 1n;
  }

  /** Of these revisions what the store has, up to the first that it does not have. */
  async #stored(stream: string, revisions: readonly bigint[]): Promise<readonly RecordedEvent[]> {
    const [from = 0n] = revisions;
    const read = (await this.#options.store?.read(stream, { from, limit: retriedAtOnce })) ?? [];
    const found = new Map(read.map((event) => [event.revision, event]));
    const events: RecordedEvent[] = [];
    for (const revision of revisions) {
      const event = found.get(revision);
      if (event === undefined) break;
      events.push(event);
    }
    return events;
  }

  async #tryPiece(lane: Lane, laneState: LaneState<E>, events: readonly RecordedEvent[]): Promise<PieceOutcome> {
    return this.#applyPiece(lane, laneState, events).catch((error: unknown) => {
      // One that is too slow would hold up its lane at each look.
      if (isInstallationFault(error) || (!stopsLane(error) && !isTimeout(error))) throw error;
      return { kind: 'stays', reason: reasonOf(error), doubtful: isTimeout(error) };
    });
  }

  /**
   * The effects of these events and the end of their parking are one transaction, behind the lane's epoch: if we die
   * before, they are parked and still wanted; after, they are applied.
   */
  async #applyPiece(lane: Lane, laneState: LaneState<E>, events: readonly RecordedEvent[]): Promise<PieceOutcome> {
    const { pool, apply, group } = this.#options;
    const shaped: E[] = [];
    for (const event of events) shaped.push(await this.#decoding.shaped(event));
    const [{ stream } = { stream: '' }] = events;
    let made: Applied | null = null;
    try {
      const outcome = await inTransaction<PieceOutcome>(pool, async (tx) => {
        await requireOwn(tx, group, lane, laneState, 'for update');
        // First: an operator may have had one skipped since they were read.
        const ours = await unpark(
          tx,
          group,
          stream,
          events.map(({ revision }) => revision),
        );
        if (!ours) return { commit: false, result: { kind: 'changed' } };
        const effect = await apply(tx, shaped);
        if (effect !== null && 'action' in effect) {
          return { commit: false, result: { kind: 'stays', reason: effect.reason } };
        }
        made = effect;
        faultPoint('consume:before-unpark');
        return { commit: true, result: { kind: 'applied' } };
      });
      if (outcome.kind === 'applied') asApplied(made)?.committed();
      return outcome;
    } catch (error) {
      asApplied(made)?.rolledBack();
      throw error;
    }
  }

  /** Behind the lane's epoch: what a former owner cannot apply, its heir may be about to. */
  async #parkAgain(
    lane: Lane,
    laneState: LaneState<E>,
    stream: string,
    revision: bigint,
    { reason, doubtful = false }: { readonly reason: string; readonly doubtful?: boolean },
  ): Promise<void> {
    const { pool, logger, group, doubtMs: restMs = doubtMs } = this.#options;
    await inTransaction(pool, async (tx) => {
      await requireOwn(tx, group, lane, laneState, 'for update');
      await keepParked(tx, group, stream, revision, reason, doubtful ? restMs : null);
      return { commit: true, result: null };
    });
    logger.warn({ group, lane, stream, revision: String(revision), reason }, 'event stays parked');
  }
}
