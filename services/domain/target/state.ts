import type { Failure, PlannedTarget, Segment } from '#schemas/target.ts';
import { Rejection } from '../decider.ts';

/** A step of an attempt that its worker recorded before the next one. */
export interface TargetCheckpoint {
  readonly attempt: number;
  readonly step: string;
  readonly data: unknown;
  /** Of a boundary: instant at which its call is aborted. Null: the step is no boundary. */
  readonly deadline: string | null;
  /** Null: the target is no thread. */
  readonly segment: Segment | null;
}

/** A post, or one segment of a thread, as the network has it. */
export interface NetworkPost {
  readonly externalId: string;
  readonly permalink: string | null;
  readonly publishedAt: string;
}

/** What a target has in every situation. */
export interface TargetCommon extends PlannedTarget {
  readonly postId: string;
  /** The content it binds to: the post folded up to this revision. */
  readonly postRevision: number;
  /** Highest post revision whose plan or intent was applied. */
  readonly appliedRevision: number;
  readonly attempts: number;
  readonly rateLimits: number;
  readonly defers: number;
  readonly checkpoints: readonly TargetCheckpoint[];
  /** The segments of a thread that are out, in their order. */
  readonly publishedSegments: readonly NetworkPost[];
  readonly appliedCommands: readonly string[];
}

type Situation =
  | { readonly status: 'awaiting_approval' }
  | { readonly status: 'pending' }
  | {
      readonly status: 'publishing';
      readonly takeover: number;
      /** Takeover in which a segment of this attempt last went out; 0: none did. */
      readonly progressAt: number;
      readonly boundary: TargetCheckpoint | null;
    }
  | { readonly status: 'rate_limited'; readonly retryAt: string }
  | {
      readonly status: 'outcome_unknown';
      readonly takeover: number;
      readonly boundary: TargetCheckpoint | null;
      readonly unknownSince: string;
    }
  | ({
      readonly status: 'published';
      /** When the network was seen to have the post no more. */
      readonly removedAt: string | null;
    } & NetworkPost)
  | { readonly status: 'failed'; readonly failure: Failure }
  | { readonly status: 'canceled' };

export type ScheduledTarget = Situation & { readonly common: TargetCommon };
export type TargetState = { readonly status: 'none' } | ScheduledTarget;
export type TargetIn<Status extends TargetState['status']> = Extract<TargetState, { readonly status: Status }>;

export const initial: TargetState = { status: 'none' };

/** Names the worker that may write: its attempt, and how often the attempt was taken over. */
export interface Claim {
  readonly attempt: number;
  readonly takeover: number;
}

export const claimOf = ({ common, takeover }: TargetIn<'publishing' | 'outcome_unknown'>): Claim => ({
  attempt: common.attempts,
  takeover,
});

/** Whether a change of many targets may alter this one. A thread that has begun to go out cannot be taken back. */
export const isOpen = (state: TargetState): boolean =>
  (state.status === 'awaiting_approval' || state.status === 'pending' || state.status === 'rate_limited') &&
  state.common.publishedSegments.length === 0;

export const requireScheduled = (state: TargetState): ScheduledTarget => {
  if (state.status === 'none') throw new Rejection('not_found', 'There is no such target.');
  return state;
};

/** A worker's command names its claim. The command of a worker that slept, or whose attempt is over, is refused. */
export const requireClaim = (state: TargetState, claim: Claim): TargetIn<'publishing'> => {
  if (state.status !== 'publishing' || state.common.attempts !== claim.attempt || state.takeover !== claim.takeover) {
    throw new Rejection('claim_lost', `Attempt ${claim.attempt}.${claim.takeover} no longer holds this target.`);
  }
  return state;
};
