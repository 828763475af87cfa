import type { PlatformAdapter, PublishOutcome, PublishRequest } from '#contracts/ports/platform.ts';
import { adapterFailed, interrupted, outcomeUnknown } from '#domain/publish-failures.ts';
import type { WorkContext } from './context.ts';
import type { Lent } from './files.ts';
import { ClaimLost } from './leased-target.ts';
import { BoundaryMissed, type Steps } from './steps.ts';
import { pause } from './time.ts';

/** Milliseconds that an adapter has after its deadline, or after a stop before the boundary, to end by itself. */
const graceMs = 500;

export type CallResult =
  | PublishOutcome
  /** The process drains, and nothing was called: the next worker goes on in this attempt from its checkpoints. */
  | { readonly kind: 'drained' };

/**
 * Calls the adapter once and corrects an answer that contradicts the boundary: after it `deferred` becomes `unknown`,
 * before it `unknown` becomes `deferred`. The adapter may record nothing more when this returns.
 */
export const callAdapter = async (
  { tools, leased, draining }: WorkContext,
  adapter: PlatformAdapter,
  request: PublishRequest,
  steps: Steps,
  lent: Lent,
): Promise<CallResult> => {
  const { targetId } = request;
  const ended = new AbortController();
  try {
    const call = adapter.publish(request, steps);
    // The adapter uses the files until its call has ended, which may be later than the end of this wait.
    void call.then(lent.close, lent.close);
    const outcome = await Promise.race([call, limit(tools, steps, lent, ended.signal)]);
    const { crossed } = steps;
    if (outcome.kind === 'unknown' && !crossed) return { kind: 'deferred', failure: outcome.failure };
    if (outcome.kind === 'deferred' && crossed) return { kind: 'unknown', failure: outcome.failure };
    return outcome;
  } catch (error) {
    // The claim is ours and nothing was called: that outcome is known, and a retry may do better.
    if (error instanceof BoundaryMissed) return { kind: 'failed', failure: interrupted };
    if (error instanceof ClaimLost || !leased.lease.isHeld()) throw error;
    if (steps.crossed) {
      tools.logger.error({ err: error, targetId }, 'a publish call ended with an error');
      return { kind: 'unknown', failure: outcomeUnknown };
    }
    if (draining.aborted) return { kind: 'drained' };
    tools.logger.error({ err: error, targetId }, 'preparing a post ended with an error');
    return { kind: 'deferred', failure: adapterFailed };
  } finally {
    ended.abort();
    steps.end();
  }
};

/** The outcome of an adapter that does not end by itself: before the boundary by its limits, after it by the deadline. */
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
    // A boundary that comes meanwhile ends the limits of the preparation, so the loop looks for one every second.
    await pause(Math.min(left, 1_000), ended);
  }
  if (steps.crossed) return { kind: 'unknown', failure: outcomeUnknown };
  // Nobody reads the outcome of a call that has ended.
  if (!ended.aborted) steps.stop();
  return { kind: 'deferred', failure: adapterFailed };
};
