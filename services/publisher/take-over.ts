import type { ScheduledTarget, TargetIn } from '#domain/post-target/target.ts';
import { interrupted } from '#domain/publish-failures.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { WorkContext } from './context.ts';
import { failBeforeCall, recordOutcome } from './outcome.ts';
import { settleInterrupted } from './reconcile.ts';

/** Takeovers of one attempt without a segment published; after more, the attempt fails. */
const maxTakeovers = 10;

/**
 * Takes over the claim of a worker that is gone. The first step is an append, so that every later append of that worker
 * conflicts. After a boundary this worker asks the network for the result of the call; before one, it continues the
 * attempt. The claim may be hours old: if the client was archived since, the attempt is deferred, and the next claim
 * cancels the target.
 */
export const takeOver = async (context: WorkContext, target: TargetIn<'publishing'>): Promise<void> => {
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
