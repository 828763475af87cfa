import { Rejection } from '#domain/decider.ts';
import { isReleasedFor } from '#domain/post/post.ts';
import { checkDue } from '#domain/post/scheduling.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { IdParams } from '#schemas/http/common.ts';
import { PostTarget, PostTargetReschedule } from '#schemas/http/post-target.ts';
import { type Call, type One, operation } from '../call/operation.ts';
import { invalid } from '../call/refusal.ts';
import { answerTarget } from './answers.ts';
import { postTargetsTag, targetExample } from './examples.ts';
import { type LoadedTarget, loadTarget, recordOrLeave, wakeOrLeave } from './load.ts';
import { giveBackOrLeave, reserveFor } from './quota.ts';
import { requireWordForRetry } from './restore-word.ts';

/** One action on one target. Its post is fanned out first, so that If-Match and the rules meet a stream. */
const actOnTarget = async <Decided>(
  call: Call<{ readonly id: string }>,
  { accept, command, optional, sendsOut }: TargetAction<Decided>,
): Promise<One<unknown>> => {
  let found: LoadedTarget | undefined;
  const load = async (): Promise<LoadedTarget> => {
    found = await loadTarget(call, call.params.id);
    return found;
  };
  const { state, events, revision, replayed } = await call.stream(target).act({
    load: async () => (await load()).target,
    guard: call.guard,
    accept: async () => {
      const loaded = found ?? (await load());
      return accept(loaded, call.now, sendsOut === true && (await requireWordForRetry(call, loaded)));
    },
    command: (decided: Decided, { commandId }) => command(decided, commandId),
    rule: (loaded, decided) => reserveFor(call, loaded, command(decided, call.context.commandId)),
    optional,
    partitionKey: (state) => (state.status === 'none' ? '' : state.common.postId),
  });
  const { post, target: before } = found ?? (await load());
  await recordOrLeave(call, before.state.common.postId, [{ state, events, revision }], post);
  if (sendsOut === true) await wakeOrLeave(call, [call.params.id]);
  await giveBackOrLeave(call, before.state.common.postId, [call.params.id]);
  return { data: answerTarget(events, post.events), revision, replayed };
};

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

interface Moved {
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

export const cancelPostTarget = operation({
  id: 'cancelPostTarget',
  method: 'POST',
  path: '/post-targets/{id}/cancel',
  tag: postTargetsTag,
  summary: 'Cancel a target that is not published yet',
  description:
    'A target that is canceled already is answered unchanged. If the publisher takes the target at the same moment, either outcome is possible: the answer, and later the target, say which. A target that the network’s own scheduler has (`handed_to_platform`) is first deleted there: the answer says `undo: pending`, and later the target is canceled with `undo: done`, or published with `undo: failed` where the network was faster. So is one that is being handed over to that scheduler (`publishing`), or whose hand-over has no known outcome yet (`outcome_unknown`): the network deletes it once it is known to have it. Less than a minute before its time: 409 `target_not_pending`.',
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: PostTarget,
  codes: ['idempotency_key_reused', 'target_not_pending'],
  example: { data: { ...targetExample, status: 'canceled', revision: 1 } },
  handle: (call) => actOnTarget(call, canceling),
});

export const retryPostTarget = operation({
  id: 'retryPostTarget',
  method: 'POST',
  path: '/post-targets/{id}/retry',
  tag: postTargetsTag,
  summary: 'Queue a failed or rate-limited target again',
  description:
    'The next attempt starts at once, also where its failure is not retryable; `scheduledAt` stays as it was planned. A target with an unknown outcome is refused: the network is asked first, since a repeat could publish twice.',
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: PostTarget,
  codes: ['idempotency_key_reused', 'target_not_retryable', 'restore_unconfirmed', 'stream_full', 'quota_exceeded'],
  example: { data: targetExample },
  handle: (call) => actOnTarget(call, retrying),
});

export const reschedulePostTarget = operation({
  id: 'reschedulePostTarget',
  method: 'POST',
  path: '/post-targets/{id}/reschedule',
  tag: postTargetsTag,
  summary: 'Move a target to another time',
  description:
    'Send either `scheduledAt`, by which the target loses its jitter, or `shiftMinutes`, by which it keeps it. The next attempt starts at the new time, whatever `retryAt` was. Possible while the target is pending, rate_limited or awaiting_approval, and while the network’s own scheduler has it (`handed_to_platform`): then the answer says `undo: pending` and has the old time, until the network publishes the post at its new time, or has deleted it. What it deleted is handed over again at its new time where the network takes it, else it becomes managed; a managed target stays managed. A target that the network publishes within a minute, or that is about to be canceled: 409 `target_not_pending`.',
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: PostTargetReschedule,
  answer: PostTarget,
  codes: [
    'validation_failed',
    'idempotency_key_reused',
    'target_not_pending',
    'schedule_in_past',
    'schedule_too_far',
    'cadence_exceeded',
    'stream_full',
    'quota_exceeded',
  ],
  example: { body: { shiftMinutes: 30 }, data: targetExample },
  handle: (call) => actOnTarget(call, rescheduling(call.body)),
});
