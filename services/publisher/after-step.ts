import type { AfterStepOutcome } from '#contracts/ports/platform.ts';
import type { AfterStep, TargetCommand, TargetIn } from '#domain/post-target/target.ts';
import {
  afterStepInterrupted,
  afterStepUnanswered,
  interrupted,
  mediaMissing,
  mediaNotReady,
  noAdapter,
  usesUpNoTry,
} from '#domain/publish-failures.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Failure } from '#schemas/target.ts';
import { adapterOf, hasEndedVersion, mediaReadiness, type WorkContext } from './context.ts';
import { adapterTimes, Deadline } from './deps.ts';
import { answerOf, issueOf, refusalOf } from './follow-up.ts';
import { ClaimLost } from './leased-target.ts';
import type { MediaReadiness, SegmentFiles } from './media-readiness.ts';
import { namedRetry, shortestWait } from './named-retry.ts';
import { reportLapse } from './outcome.ts';
import type { Content } from './related-streams.ts';
import { accountOf, filesOf } from './request.ts';
import { minLeft } from './steps.ts';

/** The worker's step that gives a published post what the network takes of it only then. */

/**
 * Makes one try of the step. The try is recorded before its call; if the worker dies between the two, or before the outcome is
 * recorded, the next worker finds the try after its deadline and makes another: a step that is done twice does no harm.
 */
export const carryOutStep = async (
  context: WorkContext,
  target: TargetIn<'published'>,
  one: AfterStep,
): Promise<void> => {
  const { tools, leased } = context;
  const { step, try: tried } = one;
  if (one.status === 'calling') {
    const now = leased.now();
    const outcome = { kind: 'refused', issue: issueOf(afterStepUnanswered), retryAt: now } as const;
    await leased.record({ type: 'EndAfterStep', step, try: tried, now, isLapsed: true, outcome });
    return;
  }
  const [conditions, content, readiness] = await Promise.all([
    context.conditions.current(target),
    context.streams.content(target),
    mediaReadiness(context, target),
  ]);
  const adapter = adapterOf(context, target, conditions);
  const files = coverFiles(target, content, readiness);
  const refused = refusalOf(conditions, adapter, afterStepInterrupted) ?? ('failure' in files ? files.failure : null);
  if (adapter?.afterStep === undefined || refused !== null || 'failure' in files) {
    await leased.record({ type: 'RefuseAfterStep', step, issue: issueOf(refused ?? noAdapter) });
    return;
  }
  const { state } = conditions.account;
  const account = accountOf(target, state);
  const { boundaryDeadlineMs } = adapterTimes(adapter, target.common.platform, account, tools.config);
  const deadline = new Deadline(boundaryDeadlineMs);
  const lent = tools.files.lend(files, deadline.signal);
  try {
    const now = leased.now();
    const until = new Date(Date.parse(now) + boundaryDeadlineMs).toISOString();
    await leased.record({ type: 'StartAfterStep', step, now, deadline: until });
    faultPoint('publisher:after-step-start');
    if (!leased.lease.isHeld()) throw new ClaimLost('the lease ran out before the call');
    const { targetId, platform } = target.common;
    const [{ content: text }] = content.segments;
    const { cover } = lent;
    if (cover === null) throw new BrokenInvariant(`target ${targetId} has a step due and no cover`);
    const request = {
      ...{ step, targetId, platform, externalId: target.externalId, content: text, cover },
      account: { ...account, scopes: state.status === 'none' ? [] : state.scopes },
    };
    const unanswered = (): AfterStepOutcome => ({ kind: 'deferred', failure: afterStepUnanswered });
    const outcome =
      deadline.leftMs() < minLeft(boundaryDeadlineMs)
        ? ({ kind: 'deferred', failure: interrupted } as const)
        : await answerOf(
            context,
            { targetId, step },
            deadline,
            adapter.afterStep(request, deadline.signal),
            unanswered,
          );
    faultPoint('publisher:after-step-call');
    await hasEndedVersion(context, outcome);
    await leased.recordUntilStored(commandOf(context, targetId, one, outcome), leased.lease.signal, true);
    faultPoint('publisher:after-step');
    if ('failure' in outcome) await reportLapse(context, target, outcome.failure);
  } finally {
    deadline.clear();
    await lent.close();
  }
};

/** The cover that the network gets, alone. */
const coverFiles = (
  target: TargetIn<'published'>,
  { body }: Content,
  readiness: MediaReadiness,
): SegmentFiles | { readonly failure: Failure } => {
  if (readiness.kind === 'failed') return readiness;
  if (readiness.kind === 'waiting') return { failure: mediaNotReady(readiness.waiting[0].mediaId) };
  const files = filesOf(target, readiness.files);
  return files.cover === null ? { failure: mediaMissing(body?.coverMediaId ?? '') } : { ...files, media: [] };
};

const commandOf = (
  context: WorkContext,
  targetId: string,
  { step, try: tried }: AfterStep,
  outcome: AfterStepOutcome,
): TargetCommand => {
  const { tools, leased } = context;
  const now = leased.now();
  const command = { type: 'EndAfterStep', step, try: tried, now } as const;
  if (outcome.kind === 'done') return { ...command, outcome };
  const { deferDelaysMs } = tools.config;
  const delay = deferDelaysMs[tried - 1] ?? deferDelaysMs.at(-1);
  const delayMs = delay === undefined ? null : delay * (1 + tools.random() / 10);
  const refused = (retryAt: string | null): TargetCommand => ({
    ...command,
    outcome: { kind: 'refused', issue: issueOf(outcome.failure), retryAt },
  });
  // The try was recorded, and nothing was made: the next one follows once publishing goes on.
  if (usesUpNoTry(outcome.failure)) return refused(now);
  switch (outcome.kind) {
    case 'failed':
      return refused(null);
    case 'rate_limited':
      return refused(namedRetry(context, targetId, outcome, delayMs ?? shortestWait(tools, tried - 1)).retryAt);
    case 'deferred':
      return refused(delayMs === null ? null : new Date(Date.parse(now) + delayMs).toISOString());
  }
};
