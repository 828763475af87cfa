import type { AfterStepName, FollowUpIssue, StepName, TargetEvent } from '#schemas/target.ts';
import { Rejection } from '../decider.ts';
import { afterStepPostUnknown } from '../publish-failures.ts';
import { commentAfter, commentOfFound } from './first-comment.ts';
import type { AfterStep, TargetState } from './state.ts';

/**
 * What a network takes of a post only once it is out, such as the cover of a video. Its law: no call before its try is
 * recorded. A step that is done twice leaves what it leaves done once, so a lost answer and a death lead to another try, and
 * no try makes another post. The steps never change the target's status, and none waits for another.
 */

/** The first waits are short, and some networks take no step before they have worked through the video. */
const maxTries = 6;

/** What follows the publication. */
export interface FollowUps {
  /** When the first comment is due; null or absent: none is wanted. */
  readonly commentDueAt?: string | null;
  /** Absent: none. */
  readonly afterSteps?: readonly DueStep[];
  /** Why the network shows the post to fewer people than was asked; absent: it does not, or does not say. */
  readonly narrowed?: FollowUpIssue;
}

export interface DueStep {
  readonly step: StepName;
  readonly dueAt: string;
}

/**
 * That something is due is appended with the publication: a worker that dies right after it loses nothing.
 * @param postId id of the post on the network; null: nobody knows it
 */
export const followUpsOf = (
  { commentDueAt = null, afterSteps = [], narrowed }: FollowUps,
  postId: string | null,
): readonly TargetEvent[] => [
  ...commentAfter(commentDueAt, postId),
  ...stepsAfter(afterSteps, postId),
  ...(narrowed === undefined ? [] : [failed('privacy', narrowed)]),
];

/** Of a post that was found after a restore: a comment may be there, and a step does no harm again. */
export const followUpsOfFound = (
  { commentDueAt = null, afterSteps = [] }: FollowUps,
  postId: string | null,
): readonly TargetEvent[] => [...commentOfFound(commentDueAt), ...stepsAfter(afterSteps, postId)];

const stepsAfter = (steps: readonly DueStep[], postId: string | null): readonly TargetEvent[] =>
  steps.map(({ step, dueAt }) => (postId === null ? failed(step, afterStepPostUnknown) : due(step, 1, dueAt, null)));

const due = (step: StepName, tried: number, dueAt: string, refusal: FollowUpIssue | null): TargetEvent => ({
  type: 'TargetAfterStepScheduled',
  data: { step, try: tried, dueAt, refusal },
});

const failed = (step: AfterStepName, { code, message, platformCode }: FollowUpIssue): TargetEvent => ({
  type: 'TargetAfterStepFailed',
  data: { step, code, message, platformCode },
});

type StepEvent = Extract<TargetEvent, { type: `TargetAfterStep${string}` }>;

export const evolveAfterStep = (steps: readonly AfterStep[], event: StepEvent): readonly AfterStep[] => {
  const { step } = event.data;
  const others = steps.filter((one) => one.step !== step);
  switch (event.type) {
    case 'TargetAfterStepScheduled':
      return [...others, { step: event.data.step, status: 'due', try: event.data.try, dueAt: event.data.dueAt }];
    case 'TargetAfterStepStarted':
      return [
        ...others,
        { step: event.data.step, status: 'calling', try: event.data.try, deadline: event.data.deadline },
      ];
    default:
      return others;
  }
};

/** A worker claims the due try, right before its call. */
export interface StartAfterStep {
  readonly type: 'StartAfterStep';
  readonly step: StepName;
  readonly now: string;
  /** Instant at which the call is aborted. */
  readonly deadline: string;
}

export const startAfterStep = ({ step, now, deadline }: StartAfterStep, state: TargetState): readonly TargetEvent[] => {
  const { try: tried, dueAt } = requireStep(state, step, 'due');
  if (dueAt > now) throw new Rejection('not_due', `The step ${step} is due at ${dueAt}.`);
  return [{ type: 'TargetAfterStepStarted', data: { step, try: tried, deadline } }];
};

/** A worker finds before the call that no call can succeed. */
export interface RefuseAfterStep {
  readonly type: 'RefuseAfterStep';
  readonly step: StepName;
  readonly issue: FollowUpIssue;
}

export const refuseAfterStep = ({ step, issue }: RefuseAfterStep, state: TargetState): readonly TargetEvent[] => {
  requireStep(state, step, 'due');
  return [failed(step, issue)];
};

/** The worker of the call records how it ended; behind its deadline another worker records that nobody answered. */
export interface EndAfterStep {
  readonly type: 'EndAfterStep';
  readonly step: StepName;
  readonly try: number;
  readonly now: string;
  /** It is not the worker of the call that says so. */
  readonly isLapsed?: true;
  readonly outcome:
    | { readonly kind: 'done' }
    /** `retryAt`: the instant of the next try, null: no other try can help. */
    | { readonly kind: 'refused'; readonly issue: FollowUpIssue; readonly retryAt: string | null };
}

export const endAfterStep = (command: EndAfterStep, state: TargetState): readonly TargetEvent[] => {
  const { step, now, outcome, isLapsed } = command;
  const calling = requireStep(state, step, 'calling');
  if (calling.try !== command.try) throw new Rejection('claim_lost', `Try ${calling.try} is the one under way.`);
  if (isLapsed === true && calling.deadline > now) {
    throw new Rejection('not_due', `The call may run until ${calling.deadline}.`);
  }
  if (outcome.kind === 'done') return [{ type: 'TargetAfterStepCompleted', data: { step } }];
  const { issue, retryAt } = outcome;
  if (retryAt === null || calling.try >= maxTries) return [failed(step, issue)];
  const { code, message, platformCode } = issue;
  return [due(step, calling.try + 1, retryAt, { code, message, platformCode })];
};

type StepIn<Status extends AfterStep['status']> = Extract<AfterStep, { readonly status: Status }>;

const requireStep = <Status extends AfterStep['status']>(
  state: TargetState,
  step: StepName,
  status: Status,
): StepIn<Status> => {
  const found = state.status === 'published' ? state.afterSteps.find((one) => one.step === step) : undefined;
  if (found === undefined || found.status !== status) {
    throw new Rejection('claim_lost', `The step ${step} is not ${status}.`);
  }
  return found as StepIn<Status>;
};
