import { attemptAt, type TargetState, target } from '#domain/post-target/target.ts';
import { loadHttpClient } from '#runtime/egress/connection.ts';
import { FairQueue } from '#runtime/work/fair-queue.ts';
import type { Lease } from '#runtime/work/leases.ts';
import type { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import { atMost, Slots, type Taker } from '#runtime/work/slots.ts';
import { type Tools, until } from './deps.ts';
import { LeasedTarget } from './leased-target.ts';
import { nextFollowUp } from './outcome.ts';
import { type Conditions, RelatedStreams, TargetConditions } from './related-streams.ts';
import { type DueRow, publisherQueue } from './shares.ts';
import type { StaleRows } from './stale-rows.ts';
import { type RestMs, Work } from './work.ts';

/** Streams read at once to prepare targets. The remaining connections serve targets that are due. */
const readsAtOnce = 24;
/** Milliseconds before a target's time at which the worker reads its account and client. */
const checkAheadMs = 500;
/** Milliseconds that a row without a stream rests. */
const orphanRestMs = 30_000;

/**
 * Works on leased targets: reads their related streams ahead of time, and publishes each at its instant, never before.
 */
export class TargetWorker {
  readonly #tools: Tools;
  readonly #clocks: SandboxClocks;
  readonly #staleRows: StaleRows;
  readonly #draining: AbortSignal;
  readonly #streams: RelatedStreams;
  readonly #acting: FairQueue;
  readonly #reading = new FairQueue({ slots: new Slots(readsAtOnce, atMost(readsAtOnce)) });

  constructor(tools: Tools, clocks: SandboxClocks, staleRows: StaleRows, draining: AbortSignal) {
    this.#tools = tools;
    this.#clocks = clocks;
    this.#staleRows = staleRows;
    this.#draining = draining;
    this.#streams = new RelatedStreams(tools.store);
    this.#acting = publisherQueue(tools.config.publishConcurrency);
  }

  async publishDue(row: DueRow, lease: Lease): Promise<RestMs> {
    const { now, aheadMs } = this.#toolsOf(row);
    const stop = AbortSignal.any([lease.signal, this.#draining]);
    // Ahead of its time, which would pass while the client of calls loads.
    if (row.network.startsWith('live/')) loadHttpClient();
    const leased = await this.#load(row, lease);
    const live = leased.state;
    // A row has no stream after an older backup of the store was restored. The rest keeps searches from finding it each
    // time.
    if (live.status === 'none') return orphanRestMs;
    const at = nextInstant(live);
    // The row is behind its stream. If the target has work once the row has caught up, a search finds it.
    if (at === null || at > now() + aheadMs) {
      this.#noteStaleRow(leased, row);
      return null;
    }
    await this.#reading.run({ workspaceId: row.workspaceId }, () => this.#streams.content(live));
    await until(at - checkAheadMs, now, stop);
    if (stop.aborted) return null;
    const conditions = await this.#reading.run({ workspaceId: row.workspaceId }, () => this.#streams.conditions(live));
    await until(at, now, stop);
    if (stop.aborted) return null;
    const work = this.#workOn(row, leased, conditions);
    const taker = takerOf(row, conditions);
    const unwatch = this.#watch(row, leased, conditions);
    // The worker takes a new slot for each segment of a thread and for what follows a post, so that a long thread does not delay
    // other targets.
    try {
      let rest = await this.#acting.run(taker, () => work.run());
      while (rest === 'next slot') rest = await this.#acting.run(taker, () => work.run());
      this.#noteStaleRow(leased, row);
      return rest;
    } finally {
      unwatch();
    }
  }

  /**
   * Asks about an outcome that the network has not said yet. If the answer leads to a new attempt or a next segment, the
   * search for due work finds it.
   */
  async settleOpen(row: DueRow, lease: Lease): Promise<RestMs> {
    const leased = await this.#load(row, lease);
    const live = leased.state;
    if (live.status === 'none') return orphanRestMs;
    let rest: RestMs = null;
    if (live.status === 'outcome_unknown' || live.status === 'processing') {
      const conditions = await this.#reading.run({ workspaceId: row.workspaceId }, () =>
        this.#streams.conditions(live),
      );
      const unwatch = this.#watch(row, leased, conditions);
      const result = await this.#workOn(row, leased, conditions).run().finally(unwatch);
      rest = result === 'next slot' ? null : result;
    }
    this.#noteStaleRow(leased, row);
    return rest;
  }

  async #load(row: DueRow, lease: Lease): Promise<LeasedTarget> {
    const { store, now, clockAheadMs } = this.#toolsOf(row);
    const loaded = await this.#reading.run({ workspaceId: row.workspaceId }, () => store.load(target, row.id));
    return new LeasedTarget(store, lease, loaded, { now, clockAheadMs });
  }

  /** With the time of the row's workspace. A lateness that a move of its clock made says nothing of this publisher. */
  #toolsOf({ workspaceId, network }: DueRow): Tools {
    const [tools, clocks] = [this.#tools, this.#clocks];
    if (network.startsWith('live/') || clocks.latest(workspaceId) === 0) return tools;
    const clockAheadMs = (): number => clocks.latest(workspaceId);
    return {
      ...tools,
      clockAheadMs,
      now: () => tools.now() + clockAheadMs(),
      sinceMove: () => clocks.movedAt(workspaceId) + clockAheadMs(),
      ...{ lateness: null, processing: null },
    };
  }

  #workOn(row: DueRow, leased: LeasedTarget, conditions: Conditions): Work {
    const streams = this.#streams;
    return new Work({
      tools: this.#toolsOf(row),
      streams,
      leased,
      conditions: new TargetConditions(streams, conditions),
      network: takerOf(row, conditions).network ?? row.network,
      draining: this.#draining,
    });
  }

  /** Until the returned function is called, the target's calls of its network are kept. */
  #watch({ id, workspaceId }: DueRow, leased: LeasedTarget, { account: { state } }: Conditions): () => void {
    const { calls } = this.#tools;
    if (calls === null || state.status === 'none') return () => undefined;
    const attempt = (): number => (leased.state.status === 'none' ? 0 : leased.state.common.attempts);
    const context = () => leased.context();
    return calls.watch({ targetId: id, workspaceId, clientId: state.clientId, attempt, context });
  }

  #noteStaleRow(leased: LeasedTarget, row: DueRow): void {
    if (leased.revision > row.revision) this.#staleRows.add(row, leased.revision);
  }
}

/** The account's stream names the network. The row names the network only once the read model has the account. */
const takerOf = ({ workspaceId, network }: DueRow, { account: { state } }: Conditions): Taker => ({
  workspaceId,
  network: state.status === 'none' ? network : `${state.network}/${state.platform}`,
});

/** Milliseconds since the epoch at which the target has work; null: it has none. */
const nextInstant = (state: TargetState): number | null => {
  switch (state.status) {
    case 'pending':
    case 'rate_limited':
      return Date.parse(attemptAt(state));
    case 'publishing':
    case 'processing':
    case 'outcome_unknown':
      return 0;
    case 'published':
      return nextFollowUp(state);
    case 'awaiting_approval':
      return state.common.approvalLate === 'fail' ? Date.parse(state.common.dueAt) : null;
    case 'handed_to_platform':
      return state.undo === null ? Date.parse(state.common.dueAt) : 0;
    default:
      return null;
  }
};
