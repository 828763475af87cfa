import type { FollowUpIssue, TargetEvent } from '#schemas/target.ts';
import { Rejection } from '../decider.ts';
import { firstCommentPostUnknown, firstCommentUnknown } from '../publish-failures.ts';
import type { FirstComment, TargetState } from './state.ts';

/**
 * The comment that follows a published target. Its law: no call before its try is recorded; another try only after a
 * refusal that may pass; after a lost answer or a death there is none. The comment never changes the target's status.
 */

const maxTries = 3;

/**
 * That a comment is due is appended with the publication: a worker that dies right after it loses no comment.
 * @param dueAt instant of the first try; null: no comment is wanted
 * @param postId id of the post on the network; null: nobody knows it, so nothing can comment on the post
 */
export const commentAfter = (dueAt: string | null, postId: string | null): readonly TargetEvent[] => {
  if (dueAt === null) return [];
  return [postId === null ? failed(firstCommentPostUnknown) : due({ try: 1, dueAt, refusal: null })];
};

/** The comment of a post that was found after a restore: it may be there. @param dueAt as of `commentAfter` */
export const commentOfFound = (dueAt: string | null): readonly TargetEvent[] =>
  dueAt === null ? [] : [failed(firstCommentUnknown)];

const due = (data: Extract<TargetEvent, { type: 'TargetFirstCommentScheduled' }>['data']): TargetEvent => ({
  type: 'TargetFirstCommentScheduled',
  data,
});

const failed = ({ code, message, platformCode }: FollowUpIssue): TargetEvent => ({
  type: 'TargetFirstCommentFailed',
  data: { code, message, platformCode },
});

/** A worker claims the due try, right before its call. */
export interface StartFirstComment {
  readonly type: 'StartFirstComment';
  readonly now: string;
  /** Instant at which the call is aborted. */
  readonly deadline: string;
}

export const startFirstComment = ({ now, deadline }: StartFirstComment, state: TargetState): readonly TargetEvent[] => {
  const comment = requireComment(state, 'due');
  if (comment.dueAt > now) throw new Rejection('not_due', `The first comment is due at ${comment.dueAt}.`);
  return [{ type: 'TargetFirstCommentStarted', data: { try: comment.try, deadline } }];
};

/** A worker finds before the call that no call can succeed. */
export interface RefuseFirstComment {
  readonly type: 'RefuseFirstComment';
  readonly issue: FollowUpIssue;
}

export const refuseFirstComment = ({ issue }: RefuseFirstComment, state: TargetState): readonly TargetEvent[] => {
  requireComment(state, 'due');
  return [failed(issue)];
};

/** The worker of the call records how it ended. */
export interface EndFirstComment {
  readonly type: 'EndFirstComment';
  readonly try: number;
  readonly outcome:
    | { readonly kind: 'posted'; readonly externalId: string }
    /** The network made no comment; `retryAt`: the instant of the next try, null: no other try can help. */
    | { readonly kind: 'refused'; readonly issue: FollowUpIssue; readonly retryAt: string | null }
    | { readonly kind: 'unknown' };
}

export const endFirstComment = (command: EndFirstComment, state: TargetState): readonly TargetEvent[] => {
  const comment = requireComment(state, 'calling');
  const { outcome } = command;
  if (comment.try !== command.try) throw new Rejection('claim_lost', `Try ${comment.try} is the one under way.`);
  if (outcome.kind === 'posted') {
    return [{ type: 'TargetFirstCommentPosted', data: { externalId: outcome.externalId } }];
  }
  if (outcome.kind === 'unknown') return [failed(firstCommentUnknown)];
  const { issue, retryAt } = outcome;
  if (retryAt === null || comment.try >= maxTries) return [failed(issue)];
  const { code, message, platformCode } = issue;
  return [due({ try: comment.try + 1, dueAt: retryAt, refusal: { code, message, platformCode } })];
};

/** Another worker ends the call of one that is gone. The call may have had its effect, so it is not repeated. */
export interface LapseFirstComment {
  readonly type: 'LapseFirstComment';
  readonly now: string;
}

export const lapseFirstComment = ({ now }: LapseFirstComment, state: TargetState): readonly TargetEvent[] => {
  const { deadline } = requireComment(state, 'calling');
  if (deadline > now) throw new Rejection('not_due', `The call may run until ${deadline}.`);
  return [failed(firstCommentUnknown)];
};

type CommentIn<Status extends FirstComment['status']> = Extract<FirstComment, { readonly status: Status }>;

const requireComment = <Status extends FirstComment['status']>(
  state: TargetState,
  status: Status,
): CommentIn<Status> => {
  const comment = state.status === 'published' ? state.firstComment : null;
  if (comment === null || comment.status !== status) {
    throw new Rejection('claim_lost', `The first comment is not ${status}.`);
  }
  return comment as CommentIn<Status>;
};
