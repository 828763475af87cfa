import { type TargetState, target } from '#domain/target.ts';
import type { Lease } from '#runtime/work/leases.ts';
import type { Tools } from './deps.ts';
import type { DueRow } from './due-row.ts';
import { FairQueue } from './fair-queue.ts';
import { LeasedTarget } from './leased-target.ts';
import { type Conditions, RelatedStreams, TargetConditions } from './related-streams.ts';
import type { Taker } from './shares.ts';
import { SlotQueue } from './slot-queue.ts';
import type { StaleRows } from './stale-rows.ts';
import { until } from './time.ts';
import { type RestMs, Work } from './work.ts';

/** Streams that are read at once to prepare targets; the rest of the connections is left to targets that are due. */
const readsAtOnce = 24;
/** Milliseconds before its time at which the account and the client of a target are read. */
const checkAheadMs = 500;
/** Milliseconds that a row without a stream rests. */
const orphanRestMs = 30_000;

/** Works on leased targets: it reads what they need ahead of their time, and publishes each at its instant, never before. */
export class TargetWorker {
  readonly #tools: Tools;
  readonly #staleRows: StaleRows;
  readonly #draining: AbortSignal;
  readonly #streams: RelatedStreams;
  readonly #acting: SlotQueue;
  readonly #reading = new FairQueue(readsAtOnce);

  constructor(tools: Tools, staleRows: StaleRows, draining: AbortSignal) {
    this.#tools = tools;
    this.#staleRows = staleRows;
    this.#draining = draining;
    this.#streams = new RelatedStreams(tools.store);
    this.#acting = new SlotQueue(tools.config.publishConcurrency);
  }

  async publishDue(row: DueRow, lease: Lease): Promise<RestMs> {
    const { now, aheadMs } = this.#tools;
    const stop = AbortSignal.any([lease.signal, this.#draining]);
    const leased = await this.#load(row, lease);
    const live = leased.state;
    // A row without a stream: an older backup of the store was restored. A rest keeps each search from finding it.
    if (live.status === 'none') return orphanRestMs;
    const at = nextInstant(live);
    // The row is behind its stream. If there is work when it has caught up, a search finds it.
    if (at === null || at > now() + aheadMs) {
      this.#noteStaleRow(leased, row);
      return null;
    }
    await this.#reading.run(row.workspaceId, () => this.#streams.content(live));
    await until(at - checkAheadMs, now, stop);
    if (stop.aborted) return null;
    const conditions = await this.#reading.run(row.workspaceId, () => this.#streams.conditions(live));
    await until(at, now, stop);
    if (stop.aborted) return null;
    const work = this.#workOn(leased, conditions);
    const taker = takerOf(row, conditions);
    // Each segment of a thread takes its turn, so that a long thread does not keep others from their time.
    let rest = await this.#acting.run(taker, () => work.run());
    while (rest === 'next turn') rest = await this.#acting.run(taker, () => work.run());
    this.#noteStaleRow(leased, row);
    return rest;
  }

  /** A new attempt or the next segment that follows from the answer is due work, and the search for due work finds it. */
  async settleUnknown(row: DueRow, lease: Lease): Promise<RestMs> {
    const leased = await this.#load(row, lease);
    const live = leased.state;
    if (live.status === 'none') return orphanRestMs;
    let rest: RestMs = null;
    if (live.status === 'outcome_unknown') {
      const conditions = await this.#reading.run(row.workspaceId, () => this.#streams.conditions(live));
      const result = await this.#workOn(leased, conditions).run();
      rest = result === 'next turn' ? null : result;
    }
    this.#noteStaleRow(leased, row);
    return rest;
  }

  async #load(row: DueRow, lease: Lease): Promise<LeasedTarget> {
    const { store, now } = this.#tools;
    const loaded = await this.#reading.run(row.workspaceId, () => store.load(target, row.id));
    return new LeasedTarget(store, lease, loaded, now);
  }

  #workOn(leased: LeasedTarget, conditions: Conditions): Work {
    const streams = this.#streams;
    return new Work({
      tools: this.#tools,
      streams,
      leased,
      conditions: new TargetConditions(streams, conditions),
      draining: this.#draining,
    });
  }

  #noteStaleRow(leased: LeasedTarget, row: DueRow): void {
    if (leased.revision > row.revision) this.#staleRows.add(row, leased.revision);
  }
}

/** The account's stream names the network: the row names it only once its read model knows the account. */
const takerOf = ({ workspaceId, network }: DueRow, { account: { state } }: Conditions): Taker => ({
  workspaceId,
  network: state.status === 'none' ? network : `${state.network}/${state.platform}`,
});

/** Milliseconds since the epoch at which there is work on the target; null: there is none. */
const nextInstant = (state: TargetState): number | null => {
  switch (state.status) {
    case 'pending':
      return Date.parse(state.common.dueAt);
    case 'rate_limited':
      return Date.parse(state.retryAt);
    case 'publishing':
    case 'outcome_unknown':
      return 0;
    default:
      return null;
  }
};
