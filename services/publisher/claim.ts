import { EventStoreError } from '#contracts/ports/event-store.ts';
import { Rejection } from '#domain/decider.ts';
import { type TargetCommand, type TargetState, target } from '#domain/target.ts';
import { type CommandContext, type DomainStore, type Loaded, Unavailable } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { causedBy, serviceContext } from '#runtime/eventing/service-context.ts';
import { backOff } from '#runtime/work/back-off.ts';
import type { Lease } from '#runtime/work/leases.ts';
import { pause } from './time.ts';

/** Somebody else has written to the target since we read it, or our time ran out: whatever we hold is of no use now. */
export class ClaimLost extends Error {
  constructor(why: string, options?: { cause?: unknown }) {
    super(why, options);
    this.name = 'ClaimLost';
  }
}

/**
 * A target's stream as its worker writes to it: each command is decided once, on the fold the last one left, and never
 * again on another's. So a worker that slept through its lease cannot write anything any more.
 */
export class Claim {
  readonly lease: Lease;
  readonly #store: DomainStore;
  readonly #now: () => number;
  #loaded: Loaded<TargetState>;
  #closed = false;

  constructor(store: DomainStore, lease: Lease, loaded: Loaded<TargetState>, now: () => number) {
    this.#store = store;
    this.lease = lease;
    this.#loaded = loaded;
    this.#now = now;
  }

  get state(): TargetState {
    return this.#loaded.state;
  }

  get revision(): number {
    return this.#loaded.revision;
  }

  now(): string {
    return new Date(this.#now()).toISOString();
  }

  /** @throws ClaimLost; Unavailable when the store stays away; Rejection where the fold does not allow it. */
  async record(command: TargetCommand): Promise<void> {
    if (this.#closed) throw new ClaimLost('the attempt is over');
    const { state } = this.#loaded;
    if (state.status === 'none') throw new ClaimLost('there is no such target');
    try {
      this.#loaded = await execute(this.#store, target, state.targetId, command, this.context(), {
        partitionKey: state.postId,
        redecide: false,
        loaded: this.#loaded,
      });
    } catch (error) {
      if (error instanceof EventStoreError && error.code === 'wrong_expected_revision') {
        this.#closed = true;
        throw new ClaimLost('another has written to the target', { cause: error });
      }
      if (error instanceof Rejection && error.code === 'claim_lost') throw new ClaimLost(error.message);
      throw error;
    }
  }

  /**
   * Records what cannot be learned again: goes on trying while the store is away. An append that did get through and
   * was not acknowledged makes the next try conflict, and then it is recorded.
   */
  async recordForSure(command: TargetCommand, signal: AbortSignal): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.record(command);
      } catch (error) {
        if (!(error instanceof Unavailable) || signal.aborted) throw error;
        await pause(backOff(failures, { firstMs: 100, maxMs: 5_000 }), signal);
      }
    }
  }

  /** No more steps: what an adapter still does is not ours. Reopened by the next attempt. */
  close(): void {
    this.#closed = true;
  }

  open(): void {
    this.#closed = false;
  }

  /** Metadata of what follows from the target's own stream. */
  context(): CommandContext {
    const first = this.#loaded.events[0];
    const last = this.#loaded.events.at(-1);
    if (first === undefined || last === undefined) throw new ClaimLost('there is no such target');
    return serviceContext('publisher', { ...causedBy(first), causationId: last.id }, this.#now());
  }
}
