import { setTimeout as delay } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import type { Lane } from '#contracts/ports/log.ts';
import type { StoredBytes } from '#runtime/eventing/codec.ts';
import { isInstallationFault, isTimeout, stopsLane } from '#runtime/process/faults.ts';
import { byKey, inTransaction } from '../postgres/transactions.ts';
import { faultPoint } from '../process/fault-point.ts';
import type { Decoding } from './decoding.ts';
import { backoffMs, isStopped, type LaneState, type Lanes, newest } from './lanes.ts';
import { type Applied, asApplied, type ConsumeOptions, type FailureAction, type Shaped } from './options.ts';
import type { ParkedRetries } from './parked-retries.ts';
import {
  type Judged,
  maxParkedStreams,
  parkedStreams,
  reasonOf,
  type SetAside,
  setAside,
  TooManyParked,
} from './parking.ts';
import { Fenced, fenceTries, movePosition, NotMoved, type Reached, requireOwn } from './positions.ts';
import { eventAt } from './same-history.ts';

/** Applies records in order. After a failure it halves the piece until the failing record stands alone. */
type PieceOutcome =
  | { readonly kind: 'applied' }
  /** The caller has given up; no piece follows. */
  | { readonly kind: 'over' }
  /** A record of the piece may be the cause. */
  | { readonly kind: 'failed'; readonly error: unknown };

export const applied: PieceOutcome = { kind: 'applied' };
const over: PieceOutcome = { kind: 'over' };

interface PieceWork<R> {
  readonly records: readonly R[];
  /** Whether the record is blamed or left out, or waits behind such a record, and so cannot make a piece fail. */
  judged(record: R): boolean;
  /** @param whole whether the piece reaches the end of the records */
  attempt(piece: readonly R[], whole: boolean): Promise<PieceOutcome>;
  /** Blames a record that fails alone. False: no piece follows. */
  blame(record: R, error: unknown): boolean;
  /** Handles the failure of a piece in which every record is already judged. */
  failed(error: unknown): void;
}

/** Length of the start of the piece that has half of its open records. */
const halfOf = <R>(piece: readonly R[], open: readonly R[]): number => {
  const last = open[Math.ceil(open.length / 2) - 1];
  return last === undefined ? piece.length : piece.indexOf(last) + 1;
};

/** Length of the piece with one more open record, or up to the end. */
const untilNextOpen = <R>({ records, judged }: PieceWork<R>, at: number, width: number): number => {
  const next = records.findIndex((one, index) => index >= at + width && !judged(one));
  return (next === -1 ? records.length : next + 1) - at;
};

/**
 * A blamed record is set aside together with the next piece that succeeds, or at the end of the records. So a fault
 * that only looks like a bad record fails all pieces and sets no record aside.
 */
export const applyInPieces = async <R>(work: PieceWork<R>): Promise<void> => {
  const { records } = work;
  let at = 0;
  for (let width = records.length; ; ) {
    const piece = records.slice(at, at + width);
    const whole = at + width >= records.length;
    const outcome = await work.attempt(piece, whole);
    if (outcome.kind === 'over') return;
    if (outcome.kind === 'applied') {
      if (whole) return;
      at += width;
      width = Math.min(width * 2, records.length - at);
      continue;
    }
    const open = piece.filter((one) => !work.judged(one));
    const [first] = open;
    if (first === undefined) return work.failed(outcome.error);
    if (open.length > 1) width = halfOf(piece, open);
    else if (!work.blame(first, outcome.error)) return;
    else width = untilNextOpen(work, at, width);
  }
};

/** Time-outs of one piece after which its size or an event is the cause, and not chance. */
const maxTimeouts = 2;

/** Number of streams that these judgements park. */
const parkedAmong = (records: readonly StoredBytes[], left: ReadonlyMap<string, FailureAction>): number =>
  new Set(records.filter(({ id }) => left.get(id)?.action === 'park').map(({ stream }) => stream)).size;

/** Tries records until they are applied, the bad event is found and judged, or the lane stops. */
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

  /**
   * Applies all records at once. If this fails for good, it tries pieces until the bad event stands alone, and parks
   * it.
   */
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
    /** Stream → blamed event. A blame may be withdrawn. */
    const blamed = new Map<string, string>();
    const judged = ({ id, stream }: StoredBytes): boolean => left.has(id) || left.has(blamed.get(stream) ?? '');
    await applyInPieces({
      records,
      judged,
      attempt: async (piece, whole) => {
        if (whole && !gotOn && blamed.size > 1 && piece.every(judged)) {
          // All events of several streams fail, so no single event is the cause.
          this.#lanes.stoppedBy(lane, laneState, new Error([...left.values()][0]?.reason));
          return over;
        }
        // Records carry no offset, so a piece moves only the position. The log may then repeat records.
        const last = newest(laneState.position, piece.at(-1)?.position ?? null);
        const reached = whole ? end : { nextOffset: laneState.nextOffset, position: last };
        const attempt = () => this.#attempt(lane, laneState, piece, reached, left, ready);
        let outcome = await attempt();
        const isAlone = piece.filter((one) => !judged(one)).length === 1;
        // Two processes may have conflicted at a unique key; a new transaction sees the row of the other process. An
        // event
        // that was too slow has already had two tries.
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

  /** Tries one piece until it is applied, the lane stops, or the piece fails for good. */
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
          // A time-out counts against the events only if the database answers another query.
          const slow = isTimeout(error) && (await this.#answers());
          if (slow) timeouts += 1;
          if (stopsLane(error)) return { kind: 'failed', error };
          if (timeouts >= maxTimeouts && (await this.#isUndone(lane, laneState, reached)))
            return { kind: 'failed', error };
          // If the database also fails in other ways, the slow events are not the cause, and their blame is withdrawn.
          if (!slow) for (const [id, { doubtful }] of left) if (doubtful === true) left.delete(id);
          await this.#lanes.waitFor(laneState, error, tries);
        }
      }
    }
    return over;
  }

  /**
   * Whether the tries without an answer left no effect. This fences them first: a try that still runs on the server
   * would repeat the effects of the pieces and move the position past theirs. False also if the database does not
   * answer: the consumer then repeats the same try, and the position shows the result.
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

/** Milliseconds for which the position behind unwanted records may stay unstored. */
const passedOverMs = 1_000;

/** `doubtful`: the event only timed out, without other events beside it. */
type Judgement = FailureAction & { readonly doubtful?: boolean };

const nothingAside: SetAside = { ids: new Set(), streams: new Set() };

/** The transactions that commit effects together with the lane's position. */
export class Effects<E extends Shaped> {
  readonly #options: ConsumeOptions<E>;
  readonly #lanes: Lanes<E>;
  readonly #parked: ParkedRetries<E>;

  constructor(options: ConsumeOptions<E>, lanes: Lanes<E>, parked: ParkedRetries<E>) {
    this.#options = options;
    this.#lanes = lanes;
    this.#parked = parked;
  }

  /** Moves the position first: this locks the row, so a later owner waits, and an earlier owner is fenced at once. */
  async transaction(
    lane: Lane,
    laneState: LaneState<E>,
    records: readonly StoredBytes[],
    decoded: readonly E[],
    left: ReadonlyMap<string, Judgement>,
    { nextOffset, position }: Reached,
  ): Promise<FailureAction | null> {
    const { applyInOneStatement: atOnce, doubtMs } = this.#options;
    const judged: Judged = new Map(
      records.flatMap(({ id }) => (left.has(id) ? [[id, left.get(id) as Judgement]] : [])),
    );
    const parks = judged.size > 0 || records.some(({ stream }) => this.#parked.has(stream));
    if (atOnce !== undefined && records.length > 0 && !parks) {
      faultPoint('consume:before-effect');
      const done = await this.#applyInOneStatement(atOnce, lane, laneState, decoded, nextOffset, position);
      if (done) return null;
    }
    const begin = this.#options.relaxed === true ? `${byKey}; set local synchronous_commit = off` : byKey;
    if (records.length === 0) {
      // Without events only the position moves.
      const move = (tx: PoolClient) => movePosition(tx, this.#options.group, lane, laneState, nextOffset, position);
      await inTransaction(this.#options.pool, async (tx) => ({ commit: await move(tx), result: null }), begin);
      return null;
    }
    let made: Applied | null = null;
    let aside: ReadonlySet<string> = new Set();
    try {
      const failure = await inTransaction(
        this.#options.pool,
        async (tx) => {
          if (!(await movePosition(tx, this.#options.group, lane, laneState, nextOffset, position))) {
            // An earlier try was committed, but its answer was lost. So the streams that it parked are parked.
            aside = new Set(await parkedStreams(tx, this.#options.group));
            return { commit: false, result: null };
          }
          const { ids, streams } = parks
            ? await setAside(tx, this.#options.group, records, judged, { doubtMs })
            : nothingAside;
          // This must precede the commit: afterwards no event of a parked stream may skip the check for parked events.
          this.#parked.note([...streams]);
          aside = streams;
          const events = ids.size === 0 ? decoded : decoded.filter((one) => !ids.has(one.id));
          const effect = events.length === 0 ? null : await this.#options.apply(tx, events);
          if (effect !== null && 'action' in effect) return { commit: false, result: effect };
          made = effect;
          faultPoint('consume:before-commit');
          return { commit: true, result: null };
        },
        begin,
      );
      faultPoint('consume:after-commit');
      this.#parked.note([...aside]);
      asApplied(made)?.committed();
      return failure;
    } catch (error) {
      asApplied(made)?.rolledBack();
      throw error;
    }
  }

  /**
   * False: these events need a transaction. A crash before the statement leaves nothing; after it, effect and position.
   */
  async #applyInOneStatement(
    atOnce: NonNullable<ConsumeOptions<E>['applyInOneStatement']>,
    lane: Lane,
    laneState: LaneState<E>,
    events: readonly E[],
    nextOffset: bigint | null,
    position: bigint | null,
  ): Promise<boolean> {
    try {
      const eventId = eventAt(laneState.ids, position);
      const done = await atOnce(events, {
        group: this.#options.group,
        lane,
        epoch: laneState.epoch,
        nextOffset,
        position,
        eventId,
      });
      if (done === null) return false;
      if (done === 'nothing') {
        this.passOver(lane, laneState, nextOffset, position);
        return true;
      }
      faultPoint('consume:after-commit');
      done.committed();
    } catch (error) {
      if (!(error instanceof NotMoved)) throw error;
      await requireOwn(this.#options.pool, this.#options.group, lane, laneState);
    }
    return true;
  }

  /**
   * Passes over a batch without wanted events, and stores the position a little later: a write for each such batch
   * would wait for the disk each time. After a crash the consumer passes over the same records again. A relaxed
   * consumer never waits for the disk and stores each position, because readers wait for it.
   */
  passOver(lane: Lane, laneState: LaneState<E>, nextOffset: bigint | null, position: bigint | null): void {
    Object.assign(laneState, { nextOffset, position: newest(laneState.position, position) });
    const next = { lane, nextOffset, position };
    if (laneState.passing !== null && laneState.passing.stored === null) {
      laneState.passing.next = next;
      return;
    }
    const before = laneState.passing?.stored ?? Promise.resolve();
    const store = (): void => {
      if (this.#options.signal.aborted || this.#lanes.get(lane) !== laneState) return;
      const { next: to } = passing;
      // After a failure the next batch stores the position, or the consumer passes over the records again.
      passing.stored = before
        .then(() => movePosition(this.#options.pool, this.#options.group, lane, laneState, to.nextOffset, to.position))
        .then(
          () => undefined,
          () => undefined,
        )
        .finally(() => {
          if (laneState.passing === passing) laneState.passing = null;
        });
    };
    const passing: NonNullable<LaneState<E>['passing']> = {
      timer: setTimeout(store, passedOverMs).unref(),
      next,
      stored: null,
    };
    laneState.passing = passing;
  }

  /** Ends the pending store of a passed position, so that it cannot overtake a later one. */
  async settlePassing(laneState: LaneState<E>): Promise<void> {
    clearTimeout(laneState.passing?.timer);
    await laneState.passing?.stored;
    laneState.passing = null;
  }
}
