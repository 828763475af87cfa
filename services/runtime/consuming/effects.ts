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

/** Milliseconds for which what was passed over may stay unstored. */
const passedOverMs = 1_000;

/** `doubtful`: it was only slow, alone. */
export type Judgement = FailureAction & { readonly doubtful?: boolean };

const nothingAside: SetAside = { ids: new Set(), streams: new Set() };

/** The transactions in which effects hold and the lane's position moves, both or neither. */
export class Effects<E extends Shaped> {
  readonly #options: ConsumeOptions<E>;
  readonly #lanes: Lanes<E>;
  readonly #parked: ParkedRetries<E>;

  constructor(options: ConsumeOptions<E>, lanes: Lanes<E>, parked: ParkedRetries<E>) {
    this.#options = options;
    this.#lanes = lanes;
    this.#parked = parked;
  }

  /** Position first: it takes the row's lock, so a later owner waits for us and an earlier one is found out at once. */
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
      // Nothing to apply: the position alone.
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
            // A try before it was carried out and its answer lost: what that one parked is parked.
            aside = new Set(await parkedStreams(tx, this.#options.group));
            return { commit: false, result: null };
          }
          const { ids, streams } = parks
            ? await setAside(tx, this.#options.group, records, judged, { doubtMs })
            : nothingAside;
          // Before the commit: after it nothing of such a stream may take the short way.
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

  /** False when it takes a transaction. If we die before the statement nothing is there, after it effect and position are. */
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
   * A consumer that wants few of its topics' events would pay a write, and its wait for the disk, for batch after batch
   * in which there is nothing for it. It stores that it passed them over once in a while; after a death in between it
   * passes over the same ones again. A relaxed consumer waits for no disk and stores each: readers wait for its position.
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
      // What fails is stored with the next batch, or passed over again.
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

  /** Nothing of what was passed over is on its way to the store any more: what comes now may not be overtaken by it. */
  async settlePassing(laneState: LaneState<E>): Promise<void> {
    clearTimeout(laneState.passing?.timer);
    await laneState.passing?.stored;
    laneState.passing = null;
  }
}
