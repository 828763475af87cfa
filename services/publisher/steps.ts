import type { Json, PublishSteps } from '#contracts/ports/platform.ts';
import { wellFormedJson, wellFormedText } from '#runtime/eventing/well-formed.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Segment } from '#schemas/target.ts';
import { Deadline } from './deps.ts';
import { ClaimLost, type LeasedTarget } from './leased-target.ts';

/** Milliseconds that must be left of the call's deadline when the call begins. */
export const minLeft = (deadlineMs: number): number => Math.min(1_000, deadlineMs / 4);

/** The boundary is stored, and the adapter makes no call: too little time is left, or the lease ran out. */
class BoundaryMissed extends Error {
  constructor() {
    super('the store acknowledged the boundary too late for the call');
    this.name = 'BoundaryMissed';
  }
}

/** The phase of one adapter call. */
type Phase =
  | { readonly kind: 'preparing' }
  /** The append of the boundary has begun, or has ended too late for the call; no call was made. */
  | { readonly kind: 'recording_boundary'; readonly deadline: Deadline }
  /** The store has acknowledged the boundary in time. From here on the adapter may have made the call. */
  | { readonly kind: 'crossed'; readonly deadline: Deadline }
  /** The worker has stopped waiting for the adapter: the adapter may record nothing more. */
  | { readonly kind: 'ended' };

/**
 * Durable records that an adapter makes while it publishes one segment. The law: between the boundary's append and the
 * call the adapter awaits only the return of `boundary`, which checks deadline and lease on the monotonic clock. A
 * crash after the append, before or after the call, leaves a boundary that only reconcile may settle.
 */
export class Steps implements PublishSteps {
  readonly signal: AbortSignal;
  readonly #leased: LeasedTarget;
  readonly #deadlineMs: number;
  readonly #segment: Segment | null;
  readonly #stopped = new AbortController();
  #phase: Phase = { kind: 'preparing' };
  #movedAt = performance.now();
  #fetched = 0;

  /** @param segment the segment that goes out; null: the target is no thread */
  constructor(leased: LeasedTarget, signal: AbortSignal, deadlineMs: number, segment: Segment | null) {
    this.#leased = leased;
    this.#segment = segment;
    this.signal = AbortSignal.any([signal, this.#stopped.signal]);
    this.#deadlineMs = deadlineMs;
  }

  /** The deadline of the boundary call; null before the boundary's append begins and after the end. */
  get deadline(): Deadline | null {
    return 'deadline' in this.#phase ? this.#phase.deadline : null;
  }

  /** Whether the boundary may be stored although no call was made. None is made once the attempt has ended. */
  get uncalled(): boolean {
    return this.#phase.kind === 'recording_boundary';
  }

  /** Whether the call may have been made. */
  get crossed(): boolean {
    return this.#phase.kind === 'crossed';
  }

  /** Monotonic milliseconds at which a byte last moved or a checkpoint was recorded. */
  get movedAt(): number {
    return this.#movedAt;
  }

  moved(bytes: number): void {
    if (bytes > 0) this.#movedAt = performance.now();
  }

  /** @param bytes of the post's files that this machine has fetched so far */
  fetched(bytes: number): void {
    this.moved(bytes - this.#fetched);
    this.#fetched = bytes;
  }

  /** Aborts a preparation that took too long. */
  stop(): void {
    this.#stopped.abort(new Error('preparing the post took too long'));
  }

  /** Ends the adapter's right to record; the worker records the outcome. */
  end(): void {
    this.deadline?.clear();
    this.#phase = { kind: 'ended' };
  }

  async checkpoint(step: string, data: Json): Promise<void> {
    this.#requireClaim();
    if (step === 'boundary') throw new BrokenInvariant('an adapter records a boundary with boundary()');
    await this.#record(wellFormedText(step, 50), data, null);
    this.#movedAt = performance.now();
  }

  async boundary(data: Json): Promise<AbortSignal> {
    this.#requireClaim();
    faultPoint('publisher:before-boundary');
    const until = new Date(Date.parse(this.#leased.now()) + this.#deadlineMs).toISOString();
    const deadline = new Deadline(this.#deadlineMs);
    // The decider refuses a second boundary, and the deadline of the first stays.
    if (!this.crossed) this.#phase = { kind: 'recording_boundary', deadline };
    try {
      await this.#record('boundary', data, until);
      if (this.#hasEnded()) throw new ClaimLost('the attempt ended before its boundary was acknowledged');
    } catch (error) {
      deadline.clear();
      throw error;
    }
    faultPoint('publisher:after-boundary');
    const isInTime = this.#leased.lease.isHeld() && deadline.leftMs() >= minLeft(this.#deadlineMs);
    if (!isInTime) throw new BoundaryMissed();
    this.#phase = { kind: 'crossed', deadline };
    return deadline.signal;
  }

  async #record(step: string, data: Json, deadline: string | null): Promise<void> {
    const { state } = this.#leased;
    if (state.status !== 'publishing') throw new ClaimLost(`a ${state.status} target takes no steps`);
    await this.#leased.record({
      type: 'Checkpoint',
      attempt: state.common.attempts,
      takeover: state.takeover,
      step,
      data: wellFormedJson(data),
      deadline,
      segment: this.#segment,
    });
  }

  #hasEnded(): boolean {
    return this.#phase.kind === 'ended';
  }

  #requireClaim(): void {
    if (this.#hasEnded()) throw new ClaimLost('the attempt has ended');
    this.signal.throwIfAborted();
    if (!this.#leased.lease.isHeld()) throw new ClaimLost('the lease ran out');
  }
}
