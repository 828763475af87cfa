import { pause } from '#contracts/base/pause.ts';
import type { HandOverOutcome, PublishOutcome } from '#contracts/ports/platform.ts';
import { adapterFailed, interrupted, outcomeUnknown } from '#domain/publish-failures.ts';
import { PublishingHeld } from '#runtime/work/publishing-wall.ts';
import type { Failure } from '#schemas/target.ts';
import type { WorkContext } from './context.ts';
import type { Lent } from './files.ts';
import { ClaimLost } from './leased-target.ts';
import type { Steps } from './steps.ts';

/** The outcome of a boundary call: of a publish, or of a hand-over to the network's own scheduler. */
export type CallOutcome = PublishOutcome | HandOverOutcome;

/** The network does not let the target out now. The boundary was not crossed. */
export class FactsRefused extends Error {
  readonly outcome: CallOutcome;

  constructor(outcome: CallOutcome) {
    super('the network does not let the account post this now');
    this.name = 'FactsRefused';
    this.outcome = outcome;
  }
}

/** Milliseconds that an adapter has to end by itself after its deadline, or after a stop before the boundary. */
export const graceMs = 500;

/** Why the wait for the adapter ends. One for all: an abort without a reason makes an error with its stack. */
const over = new Error('the call has ended');

export type CallResult =
  | CallOutcome
  /** The process drained before the call. The next worker continues this attempt from its checkpoints. */
  | { readonly kind: 'drained' }
  /** Publishing is held. Nothing was called that could make a post. */
  | { readonly kind: 'held' };

/**
 * Calls the adapter once and corrects an answer that contradicts the boundary: after it `deferred` becomes `unknown`;
 * before it nothing was sent, and the outcome is known although the boundary may be stored. After this returns, the
 * adapter can record nothing more.
 */
export const callAdapter = async (
  { tools, leased, draining }: WorkContext,
  targetId: string,
  call: () => Promise<CallOutcome>,
  steps: Steps,
  lent: Lent,
): Promise<CallResult> => {
  const ended = new AbortController();
  try {
    const called = call();
    // The adapter uses the files until its call ends, possibly after this function has stopped waiting.
    void called.then(lent.close, lent.close);
    const outcome = await Promise.race([called, limit(tools, steps, lent, ended.signal)]);
    const { crossed } = steps;
    if (!crossed && (outcome.kind === 'unknown' || outcome.kind === 'nothing_sent' || outcome.kind === 'deferred'))
      return uncalled(steps, outcome.failure);
    if (outcome.kind === 'accepted' && !crossed) return uncalled(steps, adapterFailed);
    if (outcome.kind === 'deferred' && crossed) return { kind: 'unknown', failure: outcome.failure };
    return outcome;
  } catch (error) {
    if (error instanceof ClaimLost) throw error;
    if (error instanceof PublishingHeld) return { kind: 'held' };
    if (error instanceof FactsRefused) return error.outcome;
    if (steps.uncalled) {
      tools.logger.warn({ err: error, targetId }, 'no call was made: its boundary was not acknowledged in time');
      return uncalled(steps, interrupted);
    }
    if (!leased.lease.isHeld()) throw error;
    if (steps.crossed) {
      tools.logger.error({ err: error, targetId }, 'the adapter threw after the boundary');
      return { kind: 'unknown', failure: outcomeUnknown };
    }
    if (draining.aborted) return { kind: 'drained' };
    tools.logger.error({ err: error, targetId }, 'the adapter threw before the boundary');
    return { kind: 'deferred', failure: adapterFailed };
  } finally {
    ended.abort(over);
    steps.end();
  }
};

/** No call was made. */
const uncalled = ({ uncalled: mayBeStored }: Steps, failure: Failure): CallOutcome => ({
  kind: mayBeStored ? 'nothing_sent' : 'deferred',
  failure,
});

/** Ends the wait for an adapter: before the boundary at the preparation limits, after it at the call's deadline. */
const limit = async (
  { preparationLimitMs, preparationIdleMs }: WorkContext['tools'],
  steps: Steps,
  lent: Lent,
  ended: AbortSignal,
): Promise<PublishOutcome> => {
  const begun = performance.now();
  while (!ended.aborted) {
    if (steps.deadline === null) steps.fetched(await lent.bytes());
    const { deadline } = steps;
    const now = performance.now();
    const left =
      deadline === null
        ? Math.min(begun + preparationLimitMs, steps.movedAt + preparationIdleMs) - now
        : deadline.leftMs() + graceMs;
    if (left <= 0) break;
    if (deadline === null && steps.signal.aborted) {
      await pause(graceMs, ended);
      if (steps.deadline === null) throw steps.signal.reason;
    }
    // A boundary replaces the preparation limits by the deadline, so the loop checks for a boundary every second.
    await pause(Math.min(left, 1_000), ended);
  }
  if (steps.crossed) return { kind: 'unknown', failure: outcomeUnknown };
  // If the call has ended, its own outcome won the race, and this one is ignored.
  if (!ended.aborted) steps.stop();
  return { kind: 'deferred', failure: adapterFailed };
};
