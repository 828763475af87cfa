import { backOff } from '#contracts/base/back-off.ts';
import { pause } from '#contracts/base/pause.ts';
import { isConflict } from '#contracts/ports/event-store.ts';
import { birthOf, Rejection } from '#domain/decider.ts';
import { type TargetCommand, type TargetState, target } from '#domain/post-target/target.ts';
import { type CommandContext, type DomainStore, type Loaded, Unavailable } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { causedBy, serviceContext } from '#runtime/eventing/service-context.ts';
import type { Lease } from '#runtime/work/leases.ts';

/** This worker's fold is stale: another writer changed the target, or the worker's time ran out. */
export class ClaimLost extends Error {
  constructor(why: string, options?: { cause?: unknown }) {
    super(why, options);
    this.name = 'ClaimLost';
  }
}

/** The clock of the target's workspace, and how far it is ahead of real time. Milliseconds. */
export interface LeasedTime {
  readonly now: () => number;
  readonly clockAheadMs: () => number;
}

const isHandingOver = (state: TargetState): boolean =>
  state.status === 'publishing' && state.common.scheduleMode === 'native';

/**
 * A target's stream as the worker that leases it writes to it. Each command is decided once, on the fold that the last
 * command left, and a conflict does not re-decide it. So a worker that slept through its lease cannot write any more. One
 * writer does not end the claim of a hand-over: a cancel that comes during its call. So what is recorded of a hand-over is
 * decided again after a conflict, and the decider refuses it unless the claim that it names is still the newest.
 */
export class LeasedTarget {
  readonly lease: Lease;
  readonly #store: DomainStore;
  readonly #time: LeasedTime;
  #loaded: Loaded<TargetState>;

  constructor(store: DomainStore, lease: Lease, loaded: Loaded<TargetState>, time: LeasedTime) {
    this.#store = store;
    this.lease = lease;
    this.#loaded = loaded;
    this.#time = time;
  }

  get state(): TargetState {
    return this.#loaded.state;
  }

  get revision(): number {
    return this.#loaded.revision;
  }

  now(): string {
    return new Date(this.#time.now()).toISOString();
  }

  /** @throws ClaimLost; Unavailable when the store does not answer; Rejection when the decider refuses the command. */
  record(command: TargetCommand): Promise<void> {
    return this.#record(command, false);
  }

  async #record(command: TargetCommand, redecide: boolean): Promise<void> {
    const { state } = this.#loaded;
    if (state.status === 'none') throw new ClaimLost('the target does not exist');
    try {
      const executed = await execute(this.#store, target, state.common.targetId, command, this.context(), {
        partitionKey: state.common.postId,
        redecide: redecide || isHandingOver(state),
        loaded: this.#loaded,
      });
      // The acknowledgment of an append for which nobody waited any more must not turn the fold back.
      if (executed.revision >= this.#loaded.revision) this.#loaded = executed;
    } catch (error) {
      if (isConflict(error)) {
        throw new ClaimLost('another writer has changed the target', { cause: error });
      }
      if (error instanceof Rejection && error.code === 'claim_lost') throw new ClaimLost(error.message);
      throw error;
    }
  }

  /**
   * Records a fact that no worker can learn again, and retries while the store is unavailable. If the store stored an
   * append without acknowledging it, the next try conflicts, and the fact is already recorded.
   * @param redecide true for a command that names what it ends, so that the decider refuses it once another worker has
   *   ended that: others may append to a published target during the call, and this worker's own boundary may be stored
   *   without its knowledge
   */
  async recordUntilStored(command: TargetCommand, signal: AbortSignal, redecide = false): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.#record(command, redecide);
      } catch (error) {
        if (!(error instanceof Unavailable) || signal.aborted) throw error;
        await pause(backOff(failures, { firstMs: 100, maxMs: 5_000 }), signal);
      }
    }
  }

  /** Metadata of events that follow from the target's own stream. */
  context(): CommandContext {
    const first = birthOf(target, this.#loaded.events);
    const last = this.#loaded.events.at(-1);
    if (first === undefined || last === undefined) throw new ClaimLost('the target does not exist');
    const { now, clockAheadMs } = this.#time;
    return serviceContext('publisher', { ...causedBy(first), causationId: last.id }, now(), clockAheadMs());
  }
}
