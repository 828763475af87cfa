import type {
  Failure,
  PlannedTarget,
  Segment,
  StepName,
  TargetEvent,
  TargetStatus,
  TargetTime,
} from '#schemas/target.ts';
import { type Fact, Rejection } from '../decider.ts';
import { isUndoable } from '../post/scheduling.ts';

/** A step of an attempt that its worker recorded before the next one. */
export interface TargetCheckpoint {
  readonly attempt: number;
  readonly step: string;
  readonly data: unknown;
  /** Instant at which the boundary's call is aborted. Null: the step is no boundary. */
  readonly deadline: string | null;
  /** Milliseconds by which the clock of the deadline was ahead of real time; absent: it was not. */
  readonly aheadMs?: number;
  /** Null: the target is no thread. */
  readonly segment: Segment | null;
  /** Of a boundary: its call is known to have made nothing. */
  readonly madeNothing?: true;
}

/** A post, or one segment of a thread, as the network has it. */
export interface NetworkPost {
  readonly externalId: string;
  readonly permalink: string | null;
  readonly publishedAt: string;
}

/** When a target is due: its wall-clock time, where it has one, and the jitter behind it are that instant. */
export type DueTime = Pick<PlannedTarget, 'dueAt' | 'scheduledLocal' | 'jitterSeconds'>;

/** Fields that a target has in every status. */
export interface TargetCommon extends PlannedTarget {
  /** The time that was asked for, where a late release gave the target another one; null: it is due as asked. */
  readonly askedTime: DueTime | null;
  readonly postId: string;
  /** The target's content is the post folded up to this revision. */
  readonly postRevision: number;
  /** Highest post revision whose plan or intent was applied. */
  readonly appliedRevision: number;
  /** When the target was made. */
  readonly bornAt: string;
  /**
   * When it was last certain here what the network has: an attempt was claimed, or a person said it. Null: never. What is
   * older than a restore counts for nothing.
   */
  readonly knownAt: string | null;
  readonly attempts: number;
  readonly rateLimits: number;
  readonly defers: number;
  /** Attempts of which the network proved that they published nothing, although it had not answered. */
  readonly provenAbsences: number;
  /** Attempts of which the rules of the client assumed it. */
  readonly assumedAbsences: number;
  /** When the outcome first became unknown; null: it has not, since a person last had the target tried again. */
  readonly unknownSince: string | null;
  /** Since when deferrals and rate limits keep the target beyond its time; null: none does. */
  readonly deferredSince: string | null;
  /** The service reported the target as overdue, and nobody has moved or retried it since. */
  readonly overdue: boolean;
  readonly checkpoints: readonly TargetCheckpoint[];
  /** The published segments of a thread, in order. */
  readonly publishedSegments: readonly NetworkPost[];
  readonly appliedCommands: readonly string[];
}

/** What a network said that accepted the post and does not show it yet. */
export interface Acceptance {
  /** How the network is asked for the post. */
  readonly handle: unknown;
  readonly acceptedAt: string;
  readonly askAt: string;
  /** The instant from which the outcome is unknown. */
  readonly until: string;
}

/** What follows the published target, until it is done or given up. */
export type FollowUp =
  | { readonly status: 'due'; readonly try: number; readonly dueAt: string }
  /** The call may be under way until the deadline. */
  | { readonly status: 'calling'; readonly try: number; readonly deadline: string };
export type FirstComment = FollowUp;
export type AfterStep = FollowUp & { readonly step: StepName };
/** What becomes of a target once its scheduled post is deleted on the network. */
export type UndoRequest = { readonly requestedAt: string } & (
  | {
      readonly then: 'cancel';
      readonly reason: CancelReason;
      readonly postRevision: number | null;
    }
  | {
      readonly then: 'reschedule';
      readonly dueAt: string;
      readonly scheduledLocal: string | null;
      readonly jitterSeconds: number;
    }
  | ({
      readonly then: 'revise';
      /** Revision of the post that holds the content. */
      readonly postRevision: number;
    } & TargetTime)
);
/** That a target is to be canceled which is being handed over: once the network's answer is known. */
export type CancelRequest = Extract<UndoRequest, { then: 'cancel' }>;
export type CancelReason = Extract<TargetEvent, { type: 'TargetCanceled' }>['data']['reason'];

type Situation =
  | { readonly status: 'awaiting_approval' }
  | {
      readonly status: 'pending';
      /** When the next attempt starts; null: at `dueAt`. */
      readonly retryAt: string | null;
    }
  | {
      readonly status: 'publishing';
      /** As it was when the attempt was claimed. */
      readonly retryAt: string | null;
      readonly takeover: number;
      /** Takeover in which this attempt last published a segment; 0: it has published none. */
      readonly progressAt: number;
      readonly boundary: TargetCheckpoint | null;
      /** Only of a hand-over after its boundary; null: nobody has canceled it. */
      readonly undo: CancelRequest | null;
    }
  | {
      readonly status: 'processing';
      readonly takeover: number;
      readonly boundary: TargetCheckpoint;
      readonly accepted: Acceptance;
    }
  | { readonly status: 'rate_limited'; readonly retryAt: string }
  | {
      readonly status: 'outcome_unknown';
      readonly takeover: number;
      readonly boundary: TargetCheckpoint | null;
      /** The network accepted the post of this attempt, and never showed it; null: it said nothing of it. */
      readonly accepted: Acceptance | null;
      /** When the outcome of the latest call became unknown: the questions to the network count from it. */
      readonly askedFrom: string;
      /** The store was restored since: what the network does not show proves nothing. */
      readonly restored: boolean;
      /** Before this no other attempt starts, where the network turns out to have nothing. Absent: it named no instant. */
      readonly retryAt?: string;
      /** When looks found no post, while the rules of the client let the target be tried again then. */
      readonly absences: readonly string[];
      /** Id of the scheduled post on the network; null: none was handed over, or the answer was lost. */
      readonly nativeId: string | null;
      /** Only of a hand-over; null: nobody has canceled it. */
      readonly undo: CancelRequest | null;
    }
  | {
      readonly status: 'handed_to_platform';
      readonly takeover: number;
      readonly nativeId: string;
      /** Of the hand-over. */
      readonly boundary: TargetCheckpoint | null;
      /** Null: nobody wants the post back. */
      readonly undo: UndoRequest | null;
      /**
       * Due times that were wanted since, and that the network has not confirmed: it may have been told of each, by a call
       * without an answer, and publish the post then.
       */
      readonly otherTimes: readonly string[];
      /** Contents that were wanted since, by revision of the post, in the same way. */
      readonly otherContents: readonly number[];
    }
  | ({
      readonly status: 'published';
      /** Instant at which a check found the post removed from the network. */
      readonly removedAt: string | null;
      /** Null: none is wanted, or it has its outcome. */
      readonly firstComment: FirstComment | null;
      /** Those that are neither done nor given up, in the order of the events. */
      readonly afterSteps: readonly AfterStep[];
    } & NetworkPost)
  | { readonly status: 'failed'; readonly failure: Failure }
  | { readonly status: 'canceled' };

export type ScheduledTarget = Situation & { readonly common: TargetCommon };
export type TargetState = { readonly status: 'none' } | ScheduledTarget;
export type TargetIn<Status extends TargetState['status']> = Extract<TargetState, { readonly status: Status }>;

export const initial: TargetState = { status: 'none' };

/**
 * The target with the time of its release. Nobody asked for a later instant than the planned one, so it has no wall-clock
 * time there and no jitter: a time counted from either would be another than the one at which it goes out.
 */
export const releasedAt = (common: TargetCommon, dueAt: string): TargetCommon => {
  if (dueAt === common.dueAt) return common;
  const { askedTime, scheduledLocal, jitterSeconds } = common;
  const asked = askedTime ?? { dueAt: common.dueAt, scheduledLocal, jitterSeconds };
  return { ...common, dueAt, scheduledLocal: null, jitterSeconds: 0, askedTime: asked };
};

/** Identifies the worker that may write: its attempt, and the number of takeovers of that attempt. */
export interface Claim {
  readonly attempt: number;
  readonly takeover: number;
}

export const claimOf = ({
  common,
  takeover,
}: TargetIn<'publishing' | 'processing' | 'outcome_unknown' | 'handed_to_platform'>): Claim => ({
  attempt: common.attempts,
  takeover,
});

type SettledOutcome = Extract<TargetEvent, { type: 'TargetOutcomeSettled' }>['data'];

/** The outcome of the target is known; what is not said of it is null. */
export const settledBy = (
  by: SettledOutcome['by'],
  said: Pick<SettledOutcome, 'outcome'> & Partial<SettledOutcome>,
): TargetEvent => ({
  type: 'TargetOutcomeSettled',
  data: { by, externalId: null, permalink: null, publishedAt: null, failure: null, ...said },
});

/** The later of an instant and the one that the network named for the next attempt. */
export const notBefore = ({ retryAt }: TargetIn<'outcome_unknown'>, at: string): string =>
  retryAt !== undefined && Date.parse(retryAt) > Date.parse(at) ? retryAt : at;

const atOnce = new Date(0).toISOString();

/**
 * The instant from which the attempt may be claimed. A retry, a rate limit and a deferral set `retryAt` alone, so that
 * `dueAt` stays the time that was planned. A post for the network's own scheduler is handed over at once.
 */
export const attemptAt = ({ retryAt, common }: TargetIn<'pending' | 'publishing' | 'rate_limited'>): string =>
  retryAt ?? (common.scheduleMode === 'native' ? atOnce : common.dueAt);

/** Why a change of many targets passes over one: its status, or that a segment of its thread is published. */
export type SkipReason = TargetStatus | 'segment_published';

/** Refuses a change for which it is too late. */
export class TooLate extends Rejection {
  readonly reason: SkipReason;
  constructor(reason: SkipReason, detail: string) {
    super('target_not_pending', detail);
    this.reason = reason;
  }
}

export const tooLateToBe = (
  change: 'rescheduled' | 'canceled' | 'revised' | 'released',
  reason: SkipReason,
): TooLate => {
  const which = reason === 'segment_published' ? 'A target of which a segment is out' : `A ${reason} target`;
  return new TooLate(reason, `${which} cannot be ${change}.`);
};

export const openStatuses: readonly TargetStatus[] = ['awaiting_approval', 'pending', 'rate_limited'];
/**
 * A revise reaches a failed target, which is then tried again, and not one whose next attempt the network has set. Of those that
 * a network's own scheduler has it reaches some: `isRevisableAtNetwork`.
 */
export const revisableStatuses: readonly TargetStatus[] = ['awaiting_approval', 'pending', 'failed'];

/** Contents that a network may have been told of a scheduled post without its answer: the rows of a post keep each of them. */
const maxOtherContents = 4;

/** Whether the network's own scheduler has the post, and time enough is left to give it another content. */
export const isRevisableAtNetwork = (state: TargetState, now: string): boolean =>
  state.status === 'handed_to_platform' &&
  state.undo?.then !== 'cancel' &&
  state.otherContents.length < maxOtherContents &&
  isUndoable(state.common.dueAt, now);

/** Null: a change of targets in these statuses may alter this one. A thread with a published segment stays as it is. */
export const skipReasonOf = (
  { status, common }: ScheduledTarget,
  statuses: readonly TargetStatus[],
): SkipReason | null => {
  if (!statuses.includes(status)) return status;
  return common.publishedSegments.length > 0 ? 'segment_published' : null;
};

/** Whether a cancel of many targets may alter this one. */
export const isOpen = (state: TargetState): boolean =>
  state.status !== 'none' && skipReasonOf(state, openStatuses) === null;

const isHandedOver = ({ common }: ScheduledTarget): boolean =>
  common.scheduleMode === 'native' && common.publishedSegments.length === 0;

/** Whether a worker has the claim for a hand-over to the network's own scheduler, and has not called the network. */
export const isBeforeHandOver = (state: TargetState): boolean =>
  state.status === 'publishing' && isHandedOver(state) && state.boundary === null;

/** Whether the network was called for a hand-over, and nobody knows yet what it has. */
export const isHandOverOpen = (state: TargetState): state is TargetIn<'publishing' | 'outcome_unknown'> => {
  if (state.status === 'publishing') return isHandedOver(state) && state.boundary !== null;
  return state.status === 'outcome_unknown' && isHandedOver(state) && state.nativeId === null;
};

/** Whether a cancel may still be asked for: what a network has, or may have, it must delete first. */
export const isCancelable = (state: TargetState, now: string): boolean =>
  state.status === 'handed_to_platform' || isHandOverOpen(state)
    ? isUndoable(state.common.dueAt, now)
    : isBeforeHandOver(state) || isOpen(state);

/** Whether the target is canceled as soon as its network does not have its post, or no longer. */
export const isBeingCanceled = (state: TargetState): boolean =>
  (state.status === 'handed_to_platform' || state.status === 'publishing' || state.status === 'outcome_unknown') &&
  state.undo?.then === 'cancel';

export const requireScheduled = (state: TargetState): ScheduledTarget => {
  if (state.status === 'none') throw new Rejection('not_found', 'There is no such target.');
  return state;
};

export const requireUnknown = (state: TargetState): TargetIn<'outcome_unknown'> => {
  const target = requireScheduled(state);
  if (target.status === 'outcome_unknown') return target;
  throw new Rejection('target_not_unknown', `A ${target.status} target has a known outcome.`);
};

/** A worker's command names its claim. The decider refuses the command of a worker whose claim is no longer current. */
export const requireClaim = (state: TargetState, claim: Claim): TargetIn<'publishing'> => {
  if (state.status !== 'publishing' || state.common.attempts !== claim.attempt || state.takeover !== claim.takeover) {
    throw new Rejection('claim_lost', `Attempt ${claim.attempt}.${claim.takeover} no longer holds this target.`);
  }
  return state;
};

export const applied = (common: TargetCommon, postRevision: number): TargetCommon => ({
  ...common,
  appliedRevision: Math.max(common.appliedRevision, postRevision),
});

export const remember = (common: TargetCommon, { commandId }: Fact): TargetCommon => ({
  ...common,
  appliedCommands: [...common.appliedCommands, commandId],
});
