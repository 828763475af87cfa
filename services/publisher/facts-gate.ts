import type { PublishSteps } from '#contracts/ports/platform.ts';
import type { FactsAnswer } from '#contracts/ports/platform-account.ts';
import { factsFailure, mayNotPost, postsLater, refusesAccount, rulesOf, saidNothing } from '#domain/platforms/index.ts';
import type { TargetIn } from '#domain/post-target/target.ts';
import { type CallOutcome, FactsRefused } from './call.ts';
import type { WorkContext } from './context.ts';
import { noSegmentFiles, type TargetFiles } from './media-readiness.ts';
import type { Conditions, Content } from './related-streams.ts';
import { accountOf, overridesOf } from './request.ts';

/**
 * Asks a network that wants it what an account may post now: before the adapter prepares anything, and once more at the
 * boundary where that is over a minute ago, since an upload takes its time. Nothing durable lies between the answer and the
 * boundary: if the worker dies, the next one asks again.
 */

export interface FactsGate {
  /** Null: the target may go out. */
  check(): Promise<CallOutcome | null>;
  /** The steps, whose boundary rejects with `FactsRefused` where the target may not go out any more. */
  guard(steps: PublishSteps): PublishSteps;
}

const open: FactsGate = { check: async () => null, guard: (steps) => steps };

interface Readings {
  readonly conditions: Conditions;
  readonly content: Content;
  readonly files: TargetFiles;
}

export const factsGate = (
  { tools, leased }: WorkContext,
  target: TargetIn<'publishing'>,
  { conditions: { account }, content, files }: Readings,
): FactsGate => {
  const { platform, publishedSegments } = target.common;
  const { state } = account;
  if (rulesOf(platform).asksFirst !== true || state.status === 'none') return open;
  // The adapter alone asks where nobody else can.
  if (tools.accountsOf(state.network, platform)?.facts === undefined) return open;
  const index = publishedSegments.length;
  const judged = {
    platform,
    overrides: overridesOf(target, content, index),
    media: (files[index] ?? noSegmentFiles).gate,
  };
  const asking = { ...accountOf(target, state), workspaceId: leased.context().workspaceId };
  const check = async (): Promise<CallOutcome | null> => {
    const answer = await tools.asked.facts({ ...asking, platform, network: state.network });
    return outcomeOf(answer, judged);
  };
  const guard = (steps: PublishSteps): PublishSteps => ({
    signal: steps.signal,
    checkpoint: (step, data) => steps.checkpoint(step, data),
    moved: (bytes) => steps.moved(bytes),
    boundary: async (data) => {
      const refused = await check();
      if (refused !== null) throw new FactsRefused(refused);
      return steps.boundary(data);
    },
  });
  return { check, guard };
};

const outcomeOf = (answer: FactsAnswer, judged: Parameters<typeof factsFailure>[0]): CallOutcome | null => {
  switch (answer.kind) {
    case 'facts': {
      const { canPostNow, until } = answer.facts;
      if (!canPostNow && until === null) return { kind: 'failed', failure: mayNotPost };
      const failure = factsFailure(judged, answer.facts);
      if (failure !== null) return { kind: 'failed', failure };
      return canPostNow || until === null ? null : { kind: 'rate_limited', retryAt: until, failure: postsLater };
    }
    case 'rate_limited':
      return { kind: 'rate_limited', retryAt: answer.retryAt, failure: postsLater };
    case 'reauth_required':
      return { kind: 'failed', failure: refusesAccount(answer.reason) };
    case 'unavailable':
      return { kind: 'deferred', failure: saidNothing(answer.reason) };
  }
};
