import { attemptAt, type ScheduledTarget, type TargetIn } from '#domain/post-target/target.ts';
import { interrupted } from '#domain/publish-failures.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { carryOutStep } from './after-step.ts';
import { claim } from './claim.ts';
import { type Attempt, isHeld, type WorkContext } from './context.ts';
import { commentOn } from './first-comment.ts';
import { lookBack } from './look-back.ts';
import { followHandedOver } from './native.ts';
import { failBeforeCall, instantOf, nextFollowUp, recordOutcome } from './outcome.ts';
import { settleProcessing } from './processing.ts';
import { publish } from './publish.ts';
import { settleInterrupted, settleUnknown } from './reconcile.ts';
import { lapseRestoredComment, settleRestored } from './restored.ts';

/** Takeovers of one attempt without a segment published; after more, the attempt fails. */
const maxTakeovers = 10;

/**
 * Takes over the claim of a worker that is gone. The first step is an append, so that every later append of that worker
 * conflicts. After a boundary this worker asks the network for the result of the call; before one, it continues the
 * attempt. The claim may be hours old: if the client was archived since, the attempt is deferred, and the next claim
 * cancels the target.
 */
const takeOver = async (context: WorkContext, target: TargetIn<'publishing'>): Promise<void> => {
  const { leased } = context;
  // mutant: takeover without append
  await leased.record({ type: 'TakeOver', attempt: target.common.attempts, takeover: target.takeover });
  faultPoint('publisher:after-takeover');
  const { state } = leased;
  if (state.status !== 'publishing') return;
  if (state.boundary !== null) await settleInterrupted(context, state, state.boundary);
  else if (state.takeover - state.progressAt > maxTakeovers) {
    await failBeforeCall(context, state, { failure: interrupted });
  } else if (state.common.publishedSegments.length === 0 && (await isArchived(context, state))) {
    const content = await context.streams.content(state);
    await recordOutcome(context, state, content, null, { kind: 'deferred', failure: interrupted });
  }
};

const isArchived = async ({ conditions }: WorkContext, target: ScheduledTarget): Promise<boolean> =>
  (await conditions.current(target)).client.state.status !== 'live';

/** Milliseconds that a target rests which was found before publishing was held; searches leave it out from then on. */
const heldRestMs = 1_000;

/** Milliseconds in which no worker needs the target; null: until the read model shows more work. */
export type RestMs = number | null;
/** `next slot`: more remains to publish, or follows a post, when the workspace gets its next slot. */
type RunResult = RestMs | 'next slot';

/**
 * Brings one leased target as far as it can go now. Each turn of the loop is one durable step, and the stream alone
 * says which step is next. So a worker that dies anywhere leaves a state from which the next worker goes on in the same
 * loop.
 */
export class Work {
  readonly #context: WorkContext;
  #attempt: Attempt = { kind: 'none' };

  constructor(context: WorkContext) {
    this.#context = context;
  }

  /** After `next slot` the same worker runs it again. */
  async run(): Promise<RunResult> {
    const { leased, draining } = this.#context;
    while (!draining.aborted && leased.lease.isHeld()) {
      const result = await this.#step();
      if (result !== 'go on') return result;
    }
    return null;
  }

  async #step(): Promise<RunResult | 'go on'> {
    const { leased } = this.#context;
    const { state } = leased;
    switch (state.status) {
      case 'awaiting_approval':
        if (!this.#isDue(state.common.dueAt)) return null;
        await leased.record({ type: 'LapseApproval', now: leased.now() });
        return leased.state.status === 'awaiting_approval' ? null : 'go on';
      case 'rate_limited': {
        if (!this.#isDue(state.retryAt)) return null;
        if (await isHeld(this.#context)) return heldRestMs;
        const lost = await settleRestored(this.#context, state);
        if (lost !== null) return lost;
        await leased.record({ type: 'Requeue', now: leased.now() });
        faultPoint('publisher:after-requeue');
        return 'go on';
      }
      case 'pending': {
        // The worker leased the target ahead of its time, and the clock may have been set since.
        if (!this.#isDue(attemptAt(state)) || this.#context.tools.clock.fault() !== null) return null;
        // The hold came after the search.
        if (await isHeld(this.#context)) return heldRestMs;
        const lost = await settleRestored(this.#context, state);
        if (lost !== null) return lost;
        const missed = await lookBack(this.#context, state);
        if (missed !== null) return missed;
        if (await this.#fellBack()) return 'go on';
        const claimed = await claim(this.#context, state);
        if (claimed.kind === 'waiting_for_files' || claimed.kind === 'waiting_for_slot') return claimed.ms;
        if (claimed.kind === 'claimed') this.#keep({ kind: 'prepared', files: claimed.files });
        return 'go on';
      }
      case 'publishing': {
        if (this.#attempt.kind === 'none') {
          const lost = await settleRestored(this.#context, state);
          if (lost !== null) return lost;
          await takeOver(this.#context, state);
          this.#keep({ kind: 'taken_over' });
          return 'go on';
        }
        // A drain interrupted this worker's own attempt after its boundary: the next worker takes it over.
        if (state.boundary !== null) return null;
        this.#keep(await publish(this.#context, state, this.#attempt));
        return leased.state.status === 'publishing' || this.#hasFollowUp() ? 'next slot' : 'go on';
      }
      case 'processing': {
        const lost = await settleRestored(this.#context, state);
        if (lost !== null) return lost;
        const rest = await settleProcessing(this.#context, state);
        if (rest !== 'settled') return rest;
        return this.#hasFollowUp() ? 'next slot' : 'go on';
      }
      case 'outcome_unknown': {
        const rest = await settleUnknown(this.#context, state);
        if (rest !== 'settled') return rest;
        return leased.state.status === 'pending' || this.#hasFollowUp() ? 'next slot' : 'go on';
      }
      case 'published': {
        const now = this.#context.tools.now();
        if ((nextFollowUp(state) ?? Number.POSITIVE_INFINITY) > now) return null;
        if (await isHeld(this.#context)) return heldRestMs;
        if (await lapseRestoredComment(this.#context)) return 'go on';
        const { firstComment, afterSteps } = state;
        const step = afterSteps.find((one) => instantOf(one) <= now);
        if (firstComment !== null && instantOf(firstComment) <= now)
          await commentOn(this.#context, state, firstComment);
        else if (step !== undefined) await carryOutStep(this.#context, state, step);
        return 'go on';
      }
      case 'handed_to_platform': {
        const rest = await followHandedOver(this.#context, state);
        if (rest !== 'settled') return rest;
        return leased.state.status === 'pending' ? 'next slot' : 'go on';
      }
      default:
        return null;
    }
  }

  #hasFollowUp(): boolean {
    const { state } = this.#context.leased;
    return state.status === 'published' && nextFollowUp(state) !== null;
  }

  /** Too little time is left to hand the target over: it becomes managed. */
  async #fellBack(): Promise<boolean> {
    const { leased } = this.#context;
    const mode = (): string | null => (leased.state.status === 'pending' ? leased.state.common.scheduleMode : null);
    if (mode() !== 'native') return false;
    await leased.record({ type: 'FallBack', now: leased.now() });
    return mode() === 'managed';
  }

  #isDue(instant: string): boolean {
    return Date.parse(instant) <= this.#context.tools.now();
  }

  /** Drops the claim at the outcome of its attempt. A thread with more segments keeps its claim. */
  #keep(attempt: Attempt): void {
    this.#attempt = this.#context.leased.state.status === 'publishing' ? attempt : { kind: 'none' };
  }
}
