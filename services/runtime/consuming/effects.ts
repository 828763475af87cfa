import type { PoolClient } from 'pg';
import type { Lane } from '#contracts/ports/log.ts';
import type { StoredBytes } from '#runtime/eventing/codec.ts';
import { byKey, inTransaction } from '#runtime/postgres/transactions.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { type LaneState, newest } from './lane.ts';
import type { Lanes } from './lanes.ts';
import { type Applied, asApplied, type ConsumeOptions, type FailureAction, type Shaped } from './options.ts';
import type { ParkedRetries } from './parked-retries.ts';
import { type Judged, parkedStreams, type SetAside, setAside } from './parking.ts';
import { movePosition, NotMoved, type Reached, requireOwn } from './positions.ts';
import { eventAt } from './same-history.ts';

/** Milliseconds for which the position behind unwanted records may stay unstored. */
const passedOverMs = 1_000;

/** `doubtful`: the event only timed out, without other events beside it. */
export type Judgement = FailureAction & { readonly doubtful?: boolean };

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
