import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { instantOf } from '#schemas/common.ts';
import type { AfterStepName, FollowUpIssue, TargetEvent, TargetStatus } from '#schemas/target.ts';
import type { Model } from '../engine/model.ts';

/**
 * Columns of a target that tell what follows its publication, and their fold: the first comment, and the cover of a video;
 * and when a worker must act, in real time.
 */

interface ShownIssue extends FollowUpIssue {
  readonly at: string;
  /** When it is tried again; null: it is not. */
  readonly retryAt: string | null;
}

interface AfterStepIssue extends ShownIssue {
  readonly step: AfterStepName;
}

/** When a worker must act on each. */
type FollowUps = Readonly<Partial<Record<'comment' | AfterStepName, string>>>;

export interface FollowUpColumns {
  /** Null: nothing follows, or all of it is done or given up. */
  readonly follow_ups: FollowUps | null;
  /** Null: there is none. */
  readonly after_step_issues: readonly AfterStepIssue[] | null;
  readonly first_comment_issue: ShownIssue | null;
  /** Id of the comment on the network. */
  readonly first_comment_id: string | null;
}

export const noFollowUps = {
  follow_ups: null,
  after_step_issues: null,
  first_comment_issue: null,
  first_comment_id: null,
} as const;

type FollowUpRow = FollowUpColumns & { readonly next_action_at: string | null };
type DataOf<Type extends TargetEvent['type']> = Extract<TargetEvent, { type: Type }>['data'];

/** @param at null: it is done, or given up */
const follow = (
  { follow_ups: former }: FollowUpRow,
  name: keyof FollowUps,
  at: string | null,
): Pick<FollowUpRow, 'follow_ups' | 'next_action_at'> => {
  const { [name]: _former, ...others } = former ?? {};
  const all: FollowUps = at === null ? others : { ...others, [name]: at };
  const next = Object.values(all).sort()[0] ?? null;
  return { follow_ups: next === null ? null : all, next_action_at: next };
};

const issueOf = (
  { code, message, platformCode }: FollowUpIssue,
  { metadata }: DecodedEvent,
  retryAt: string | null,
): ShownIssue => ({ code, message, platformCode, at: instantOf(metadata), retryAt });

export const commentScheduled = <R extends FollowUpRow>(
  row: R,
  { dueAt, refusal }: DataOf<'TargetFirstCommentScheduled'>,
  event: DecodedEvent,
): R => ({
  ...row,
  ...follow(row, 'comment', dueAt),
  first_comment_issue: refusal === null ? null : issueOf(refusal, event, dueAt),
});

export const commentStarted = <R extends FollowUpRow>(
  row: R,
  { deadline }: DataOf<'TargetFirstCommentStarted'>,
): R => ({ ...row, ...follow(row, 'comment', deadline) });

export const commentPosted = <R extends FollowUpRow>(
  row: R,
  { externalId }: DataOf<'TargetFirstCommentPosted'>,
): R => ({ ...row, ...follow(row, 'comment', null), first_comment_issue: null, first_comment_id: externalId });

export const commentFailed = <R extends FollowUpRow>(row: R, issue: FollowUpIssue, event: DecodedEvent): R => ({
  ...row,
  ...follow(row, 'comment', null),
  first_comment_issue: issueOf(issue, event, null),
});

/** @param issue null: none of the step is left */
const withIssue = (
  { after_step_issues: all }: FollowUpRow,
  step: AfterStepName,
  issue: ShownIssue | null,
): Pick<FollowUpRow, 'after_step_issues'> => {
  const others = all?.filter((one) => one.step !== step) ?? [];
  const now = issue === null ? others : [...others, { step, ...issue }];
  return { after_step_issues: now.length === 0 ? null : now };
};

export const stepScheduled = <R extends FollowUpRow>(
  row: R,
  { step, dueAt, refusal }: DataOf<'TargetAfterStepScheduled'>,
  event: DecodedEvent,
): R => ({
  ...row,
  ...follow(row, step, dueAt),
  ...withIssue(row, step, refusal === null ? null : issueOf(refusal, event, dueAt)),
});

export const stepStarted = <R extends FollowUpRow>(
  row: R,
  { step, deadline }: DataOf<'TargetAfterStepStarted'>,
): R => ({ ...row, ...follow(row, step, deadline) });

export const stepCompleted = <R extends FollowUpRow>(row: R, { step }: DataOf<'TargetAfterStepCompleted'>): R => ({
  ...row,
  ...follow(row, step, null),
  ...withIssue(row, step, null),
});

export const stepFailed = <R extends FollowUpRow>(
  row: R,
  { step, ...issue }: DataOf<'TargetAfterStepFailed'>,
  event: DecodedEvent,
): R => ({ ...row, ...follow(row, step, null), ...withIssue(row, step, issueOf(issue, event, null)) });

/** States from whose time another target of the account counts its own: see `slotAtSql`. */
const countedFrom: readonly TargetStatus[] = ['publishing', 'processing', 'outcome_unknown'];

/**
 * The publisher searches `next_action_at` by real time. Where the clock of the workspace was ahead at an event, the instant
 * that the event names is as far away in real time as it was for the workspace; a move of the clock brings it nearer.
 */
export const inRealTime = <
  R extends Pick<FollowUpRow, 'next_action_at'> & { readonly status: TargetStatus; readonly schedule_mode: string },
>(
  model: Model<R>,
): Model<R> => ({
  ...model,
  fold: (row, event) => {
    const next = model.fold(row, event);
    const { aheadMs } = event.metadata;
    if (aheadMs === undefined || next === null || next.next_action_at === null) return next;
    if (next.next_action_at === row?.next_action_at) return next;
    if (next.schedule_mode !== 'native' && countedFrom.some((one) => one === next.status)) return next;
    return { ...next, next_action_at: new Date(Date.parse(next.next_action_at) - aheadMs).toISOString() };
  },
});
