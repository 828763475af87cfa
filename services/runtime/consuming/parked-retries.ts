import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Lane } from '#contracts/ports/log.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { isInstallationFault, isTimeout, stopsLane } from '#runtime/process/faults.ts';
import type { Decoding } from './decoding.ts';
import { isStopped, type LaneState, type Lanes, laneOf, oneAtATime } from './lanes.ts';
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

/** Milliseconds between two searches for due retries while events are parked. */
const requestLookMs = 1_000;
/** A search takes at most one part in this many of the time, however many streams are parked. */
const looksShare = 20;

/** Parked events applied in one piece; batches of the lane run between pieces. */
const retriedAtOnce = 100;
/** Pieces of one stream in one search; then the next stream has its turn. */
const piecesInARow = 10;

/** The result of a piece: applied; or the stream stays parked; or an operator changed the parked events meanwhile. */
type PieceOutcome =
  | { readonly kind: 'applied' }
  | { readonly kind: 'changed' }
  | { readonly kind: 'stays'; readonly reason: string; readonly doubtful?: boolean };

/** Why a stream stays parked: `slow` means that the database timed out. */
type Stays = 'slow' | 'nothing';
/** The work left on a stream after a search. */
type Left = 'more' | Stays;

/** Retries the parked events of a member's streams when they are due. */
export class ParkedRetries<E extends Shaped> {
  readonly #options: ConsumeOptions<E>;
  readonly #lanes: Lanes<E>;
  readonly #decoding: Decoding<E>;
  /**
   * Streams that may have parked events, and when this was last known. Other streams skip the check for parked events.
   */
  readonly #parked = new Map<string, number>();
  #looking: NodeJS.Timeout | null = null;
  /** The last stream of an incomplete search. The next search begins behind it, so that no stream waits for ever. */
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

  /** Retries due streams, and forgets streams without parked events. */
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
          logger.warn({ group, stream: one.stream, err: error }, 'retry of a parked stream failed; retrying later');
          if (error instanceof Fenced) return 'nothing';
          return noteReason(pool, group, one.stream, reasonOf(error)).then(
            () => 'nothing' as const,
            () => 'nothing' as const,
          );
        });
        more ||= left === 'more';
        if (left !== 'slow') continue;
        // The lane stood still during this retry. It gets as much time before the next slow retry.
        slowMs = performance.now() - began;
        this.#lookedTo = one.stream;
        break;
      }
      const asked = performance.now();
      const still = new Set(await parkedStreams(pool, group));
      // The answer may lack a stream that was parked after the query began.
      for (const [stream, at] of this.#parked) if (at < asked && !still.has(stream)) this.#parked.delete(stream);
      this.#restMs = more && slowMs === 0 ? 0 : Math.max(everyMs, slowMs, looksShare * (performance.now() - asked));
    } catch (error) {
      if (!signal.aborted) logger.warn({ group, err: error }, 'search for parked events failed; retrying later');
      this.#restMs = everyMs;
    } finally {
      this.#looking = null;
      this.note([]);
    }
  }

  /**
   * Retries a stream in the order of revisions, a few events at a time, in the lane's turn. Leaves streams of another
   * member's lanes to that member. Reads the store before the turn, because the lane would stand still during the read.
   */
  async #tryAgain({ stream, first }: StreamToRetry): Promise<Left> {
    const { pool, store, log, signal, group } = this.#options;
    const [event] = (await store?.read(stream, { from: first, limit: 1 })) ?? [];
    let lane: Lane | null;
    try {
      if (event === undefined) throw new Error('the store does not have it');
      lane = laneOf(log, event);
    } catch (error) {
      // The event has no lane to run on. The parked row tells the operator why.
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

  /** Returns the revision from which the retry continues, or why the stream stays parked. */
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
    // Events run one by one, so that the failing one is known and all before it stay applied. A single event gets a
    // second
    // try, unless it was too slow.
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

  /** Reads these revisions from the store, up to the first one that it lacks. */
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
      // An event that is too slow would delay its lane at each search.
      if (isInstallationFault(error) || (!stopsLane(error) && !isTimeout(error))) throw error;
      return { kind: 'stays', reason: reasonOf(error), doubtful: isTimeout(error) };
    });
  }

  /**
   * Applies these events and unparks them in one transaction, fenced by the lane's epoch. After a crash before the
   * commit they are parked and still due; after a crash behind it they are applied.
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
        // Unparking comes first, because an operator may have skipped one of the events since they were read.
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

  /**
   * Keeps the stream parked, fenced by the lane's epoch: the next owner may apply an event that a former owner cannot.
   */
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
