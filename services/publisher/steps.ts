import type { Json, PublishSteps } from '#contracts/ports/platform.ts';
import { wellFormedJson, wellFormedText } from '#runtime/eventing/well-formed.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Segment } from '#schemas/target.ts';
import { type Claim, ClaimLost } from './claim.ts';
import { Deadline } from './time.ts';

/** How long a call may take, and the least that must be left of it when it begins; milliseconds. */
const minLeft = (deadlineMs: number): number => Math.min(1_000, deadlineMs / 4);

/** The claim is ours, but the boundary event was acknowledged so late that the call was not made. */
export class BoundaryMissed extends Error {
  constructor() {
    super('too little time was left for the call after its boundary was recorded');
    this.name = 'BoundaryMissed';
  }
}

/**
 * What an adapter does durably while it publishes. The law: from the boundary's append to the call nothing is awaited
 * but this function's own return, and on that return the deadline and the lease are looked at on the monotonic clock.
 * Dying between append and call leaves a boundary that only reconcile may settle; so does dying right after the call.
 */
export class Steps implements PublishSteps {
  readonly signal: AbortSignal;
  readonly #claim: Claim;
  readonly #deadlineMs: number;
  readonly #segment: Segment | null;
  readonly #stopped = new AbortController();
  #deadline: Deadline | null = null;
  #crossed = false;
  #movedAt = performance.now();
  #fetched = 0;

  /** @param segment of a thread: the one that is published. */
  constructor(claim: Claim, signal: AbortSignal, deadlineMs: number, segment: Segment | null) {
    this.#claim = claim;
    this.#segment = segment;
    this.signal = AbortSignal.any([signal, this.#stopped.signal]);
    this.#deadlineMs = deadlineMs;
  }

  /** Set once the boundary's append was begun. */
  get deadline(): Deadline | null {
    return this.#deadline;
  }

  /**
   * True once the boundary's append was acknowledged: from then on the call may have been made. Before, it was not, and
   * whatever is recorded then loses to a boundary that was stored all the same.
   */
  get crossed(): boolean {
    return this.#crossed;
  }

  /** Monotonic milliseconds at which a byte was last seen to move, or a checkpoint was recorded. */
  get movedAt(): number {
    return this.#movedAt;
  }

  moved(bytes: number): void {
    if (bytes > 0) this.#movedAt = performance.now();
  }

  /** @param bytes of the post's files that have come to this machine so far */
  fetched(bytes: number): void {
    this.moved(bytes - this.#fetched);
    this.#fetched = bytes;
  }

  /** Nothing more is prepared: it took too long. */
  stop(): void {
    this.#stopped.abort(new Error('preparing the post took too long'));
  }

  async checkpoint(step: string, data: Json): Promise<void> {
    this.#mayGoOn();
    if (step === 'boundary') throw new BrokenInvariant('the boundary has its own method');
    const name = wellFormedText(step, 50);
    await this.#claim.record({
      ...this.#names(),
      type: 'Checkpoint',
      step: name,
      data: wellFormedJson(data),
      deadline: null,
      segment: this.#segment,
    });
    this.#movedAt = performance.now();
  }

  async boundary(data: Json): Promise<AbortSignal> {
    this.#mayGoOn();
    faultPoint('publisher:before-boundary');
    const until = new Date(Date.parse(this.#claim.now()) + this.#deadlineMs).toISOString();
    const deadline = new Deadline(this.#deadlineMs);
    this.#deadline = deadline;
    try {
      await this.#claim.record({
        ...this.#names(),
        type: 'Checkpoint',
        step: 'boundary',
        data: wellFormedJson(data),
        deadline: until,
        segment: this.#segment,
      });
    } catch (error) {
      deadline.clear();
      throw error;
    }
    this.#crossed = true;
    faultPoint('publisher:after-boundary');
    if (!this.#claim.lease.isHeld()) throw new ClaimLost('the lease ran out before the call');
    if (deadline.leftMs() < minLeft(this.#deadlineMs)) throw new BoundaryMissed();
    return deadline.signal;
  }

  #mayGoOn(): void {
    this.signal.throwIfAborted();
    if (!this.#claim.lease.isHeld()) throw new ClaimLost('the lease ran out');
  }

  #names(): { readonly attempt: number; readonly takeover: number } {
    const { state } = this.#claim;
    if (state.status !== 'publishing') throw new ClaimLost(`a ${state.status} target takes no steps`);
    return { attempt: state.attempts, takeover: state.takeover };
  }
}
