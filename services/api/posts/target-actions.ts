import { Rejection } from '#domain/decider.ts';
import { isReleasedFor } from '#domain/post.ts';
import { checkDue } from '#domain/scheduling.ts';
import type { TargetCommand } from '#domain/target.ts';
import { invalid } from '../refusal.ts';
import type { LoadedTarget } from './load.ts';

/** What a caller may do with a target, alone or with others in one call. */
export interface TargetAction<Decided> {
  /** Decides absolute values, so that a repeat carries out the same ones. May refuse by throwing. */
  readonly accept: (loaded: LoadedTarget, now: string, isNotOut: boolean) => Decided;
  /** It may send the target out: after a restore it may need a person’s word. */
  readonly sendsOut?: true;
  readonly command: (decided: Decided, commandId: string) => TargetCommand;
  /** True: a full stream refuses the command. */
  readonly optional: boolean;
}

interface Wanted {
  readonly scheduledAt?: string;
  readonly shiftMinutes?: number;
}

export interface Moved {
  readonly now: string;
  readonly dueAt: string;
  readonly jitterSeconds: number;
}

/** @throws Refusal 422 unless exactly one of the two members is sent */
export const rescheduling = ({ scheduledAt, shiftMinutes }: Wanted): TargetAction<Moved> => {
  if ((scheduledAt === undefined) === (shiftMinutes === undefined)) {
    throw invalid('', 'exclusive', 'exactly one of scheduledAt and shiftMinutes must be sent');
  }
  return {
    accept: ({ target: { state } }, now) => {
      const moved =
        scheduledAt === undefined
          ? { dueAt: shifted(state.common.dueAt, shiftMinutes ?? 0), jitterSeconds: state.common.jitterSeconds }
          : { dueAt: new Date(scheduledAt).toISOString(), jitterSeconds: 0 };
      checkDue(moved.dueAt, now, scheduledAt === undefined ? '/shiftMinutes' : '/scheduledAt');
      return { ...moved, now };
    },
    command: (moved, commandId) => ({ type: 'Reschedule', commandId, scheduledLocal: null, ...moved }),
    optional: true,
  };
};

const shifted = (instant: string, minutes: number): string =>
  new Date(Date.parse(instant) + minutes * 60_000).toISOString();

interface Retried {
  readonly now: string;
  /** Of the content that is tried again. */
  readonly postRevision: number;
  readonly isNotOut?: true;
}

export const retrying: TargetAction<Retried> = {
  accept: ({ target: { state }, post: { state: post } }, now, isNotOut) => {
    const { targetId, postRevision } = state.common;
    // Nothing goes out that no person has approved: a revise asks anew.
    if (state.status === 'failed' && !(post.status === 'live' && isReleasedFor(post, targetId, postRevision))) {
      throw new Rejection('target_not_retryable', 'Nobody has approved this content: a revise asks for an approval.');
    }
    return { now, postRevision, ...(isNotOut ? { isNotOut } : {}) };
  },
  command: (retried, commandId) => ({ type: 'Retry', commandId, ...retried }),
  sendsOut: true,
  optional: true,
};

export const canceling: TargetAction<{ readonly now: string }> = {
  accept: (_loaded, now) => ({ now }),
  command: ({ now }) => ({ type: 'Cancel', reason: 'requested', postRevision: null, now }),
  optional: false,
};
