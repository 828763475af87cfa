import type { CommentOutcome, CommentRequest, PlatformAdapter } from '#contracts/ports/platform.ts';
import { firstCommentOf } from '#domain/post/content.ts';
import type { FirstComment, TargetCommand, TargetIn } from '#domain/post-target/target.ts';
import {
  firstCommentInterrupted,
  interrupted,
  noAdapter,
  outcomeUnknown,
  usesUpNoTry,
} from '#domain/publish-failures.ts';
import { wellFormedText } from '#runtime/eventing/well-formed.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Failure } from '#schemas/target.ts';
import { adapterOf, hasEndedVersion, type WorkContext } from './context.ts';
import { adapterTimes, Deadline } from './deps.ts';
import { answerOf, issueOf, refusalOf } from './follow-up.ts';
import { ClaimLost } from './leased-target.ts';
import { namedRetry, shortestWait } from './named-retry.ts';
import { reportLapse } from './outcome.ts';
import type { Conditions, Content } from './related-streams.ts';
import { accountOf } from './request.ts';
import { minLeft } from './steps.ts';

/** The worker's step that comments on a published target. */

/**
 * Makes one try of the comment. The try is recorded before its call; if the worker dies between the two, or before the
 * outcome is recorded, the next worker finds the try after its deadline and records that its outcome is unknown.
 */
export const commentOn = async (
  context: WorkContext,
  target: TargetIn<'published'>,
  comment: FirstComment,
): Promise<void> => {
  const { tools, leased } = context;
  if (comment.status === 'calling') {
    await leased.record({ type: 'LapseFirstComment', now: leased.now() });
    return;
  }
  const [conditions, content] = await Promise.all([
    context.conditions.current(target),
    context.streams.content(target),
  ]);
  const adapter = adapterOf(context, target, conditions);
  const refused = refusalOf(conditions, adapter, firstCommentInterrupted);
  if (adapter === null || refused !== null) {
    await leased.record({ type: 'RefuseFirstComment', issue: issueOf(refused ?? noAdapter) });
    return;
  }
  const account = accountOf(target, conditions.account.state);
  const { boundaryDeadlineMs } = adapterTimes(adapter, target.common.platform, account, tools.config);
  const deadline = new Deadline(boundaryDeadlineMs);
  try {
    const now = leased.now();
    const until = new Date(Date.parse(now) + boundaryDeadlineMs).toISOString();
    await leased.record({ type: 'StartFirstComment', now, deadline: until });
    faultPoint('publisher:after-comment-start');
    if (!leased.lease.isHeld()) throw new ClaimLost('the lease ran out before the call');
    const outcome =
      deadline.leftMs() < minLeft(boundaryDeadlineMs)
        ? ({ kind: 'deferred', failure: interrupted } as const)
        : await call(context, adapter, requestOf(target, content, conditions), deadline);
    faultPoint('publisher:after-comment-call');
    await hasEndedVersion(context, outcome);
    await leased.recordUntilStored(
      commandOf(context, target.common.targetId, comment.try, outcome),
      leased.lease.signal,
      true,
    );
    faultPoint('publisher:after-comment');
    if ('failure' in outcome) await reportLapse(context, target, outcome.failure);
  } finally {
    deadline.clear();
  }
};

const requestOf = (
  target: TargetIn<'published'>,
  { overrides }: Content,
  { account: { state } }: Conditions,
): CommentRequest => {
  const { targetId, platform } = target.common;
  const content = firstCommentOf(platform, overrides);
  if (content === null) throw new BrokenInvariant(`target ${targetId} has a comment due and no text of it`);
  const scopes = state.status === 'none' ? [] : state.scopes;
  return {
    targetId,
    platform,
    account: { ...accountOf(target, state), scopes },
    externalId: target.externalId,
    content,
  };
};

/** After an error, or without an answer, the comment may be there. */
const call = (
  context: WorkContext,
  adapter: PlatformAdapter,
  request: CommentRequest,
  deadline: Deadline,
): Promise<CommentOutcome> => {
  const unknown = (): CommentOutcome => ({ kind: 'unknown', failure: outcomeUnknown });
  const about = { targetId: request.targetId, step: 'comment' };
  return answerOf(context, about, deadline, adapter.comment(request, deadline.signal), unknown);
};

const commandOf = (context: WorkContext, targetId: string, tried: number, outcome: CommentOutcome): TargetCommand => {
  const { tools, leased } = context;
  const command = { type: 'EndFirstComment', try: tried } as const;
  const now = Date.parse(leased.now());
  const delay = tools.config.deferDelaysMs[tried - 1];
  const delayMs = delay === undefined ? null : delay * (1 + tools.random() / 10);
  const refused = (failure: Failure, retryAt: number | null): TargetCommand => ({
    ...command,
    outcome: {
      kind: 'refused',
      issue: issueOf(failure),
      retryAt: retryAt === null ? null : new Date(retryAt).toISOString(),
    },
  });
  // The try was recorded, and nothing was made: the next one follows once publishing goes on.
  if ('failure' in outcome && usesUpNoTry(outcome.failure)) return refused(outcome.failure, now);
  switch (outcome.kind) {
    case 'posted':
      return {
        ...command,
        outcome: { kind: 'posted', externalId: wellFormedText(outcome.externalId, 500) || 'unknown' },
      };
    case 'failed':
      return refused(outcome.failure, null);
    case 'rate_limited': {
      // A comment has few tries: each waits at least as long as one that failed.
      const shortestMs = delayMs ?? shortestWait(tools, tried - 1);
      const { retryAt, failure } = namedRetry(context, targetId, outcome, shortestMs);
      return refused(failure, Date.parse(retryAt));
    }
    case 'deferred':
      return refused(outcome.failure, delayMs === null ? null : now + delayMs);
    case 'unknown':
      return { ...command, outcome: { kind: 'unknown' } };
  }
};
