import { approvalTooLate, cadenceReached, notShown, outcomeUnknown } from '#domain/publish-failures.ts';
import type { Platform } from '#schemas/common.ts';
import type { targetPublic } from '#schemas/http/webhook-events/target.ts';
import type { Failure, TargetEvent } from '#schemas/target.ts';
import type { Publisher } from '../../engine/publisher.ts';

interface Target {
  readonly ids: {
    readonly targetId: string;
    readonly postId: string;
    readonly accountId: string;
    readonly clientId: string;
    readonly platform: Platform;
  };
  readonly dueAt: string;
  /** The due instant before its last change. */
  readonly previousDueAt: string;
  /** Attempts begun. */
  readonly attempts: number;
  /** Its id on the network, once known. */
  readonly externalId: string | null;
  /** A network was asked to publish and did not confirm or deny it, and reconciling has not found out since. */
  readonly unknown: boolean;
}

const idsOf = ({ targetId, postId, accountId, clientId, platform }: Target['ids']): Target['ids'] => ({
  targetId,
  postId,
  accountId,
  clientId,
  platform,
});

interface Time {
  readonly dueAt: string;
  readonly scheduledLocal: string | null;
  readonly jitterSeconds: number;
}
const timeOf = ({ dueAt, scheduledLocal, jitterSeconds }: Time) => ({
  scheduledAt: dueAt,
  scheduledLocal,
  jitterSeconds,
});

/** Only a thread is requeued from an unknown outcome: the segment was found, and the next one follows. */
const reasonOf = (by: keyof typeof requeueReasons, unknown: boolean) =>
  unknown ? 'segment_found' : requeueReasons[by];
const requeueReasons = { schedule: 'retry_time_reached', retry: 'retry_requested', revise: 'revised' } as const;

/**
 * Longest failure that is published whole, in bytes of JSON; a network may answer with text that JSON escapes sixfold.
 */
const maxFailure = 16_000;
/** At six bytes each still within the limit. */
const maxText = 2_500;

const short = (failure: Failure): Failure => {
  const { message, platformMessage } = failure;
  if (platformMessage === null || message.length + platformMessage.length <= maxText) return failure;
  if (Buffer.byteLength(JSON.stringify(failure)) <= maxFailure) return failure;
  return { ...failure, platformMessage: platformMessage.slice(0, maxText - message.length).toWellFormed() };
};

/** One destination of a post. Steps within an attempt, and the worker that holds it, are internal. */
export const targetPublisher: Publisher<typeof targetPublic, TargetEvent, Target> = {
  rules: {
    TargetScheduled: [
      {
        type: 'target.scheduled',
        ofEvent: ({ data }) => ({
          ...idsOf(data),
          ...timeOf(data),
          timezone: data.timezone,
          scheduleMode: data.scheduleMode,
          scheduleModeReason: data.scheduleModeReason,
        }),
      },
    ],
    TargetHeld: [{ type: 'target.held', ofStream: (_, { ids, dueAt }) => ({ ...ids, scheduledAt: dueAt }) }],
    TargetReleased: [
      { type: 'target.released', ofStream: ({ data }, { ids }) => ({ ...ids, scheduledAt: data.dueAt }) },
    ],
    TargetRescheduled: [
      {
        type: 'target.rescheduled',
        ofStream: ({ data }, { ids, previousDueAt }) => ({
          ...ids,
          ...timeOf(data),
          previousScheduledAt: previousDueAt,
        }),
      },
    ],
    TargetRevised: [
      {
        type: 'target.revised',
        ofStream: ({ data }, { ids }) => ({ ...ids, ...timeOf(data), postRevision: data.postRevision }),
      },
    ],
    TargetCanceled: [{ type: 'target.canceled', ofStream: ({ data }, { ids }) => ({ ...ids, reason: data.reason }) }],
    TargetPublishStarted: [
      { type: 'target.publishing', ofStream: ({ data }, { ids }) => ({ ...ids, attempts: data.attempt }) },
    ],
    TargetPublishCheckpointed: 'a step within an attempt',
    TargetSegmentPublished: 'a step within an attempt',
    TargetPublishTakenOver: 'another worker continues the same attempt',
    TargetHandedToPlatform: [
      {
        type: 'target.handed_to_platform',
        ofStream: ({ data }, { ids }) => ({
          ...ids,
          attempts: data.attempt,
          nativeId: data.nativeId,
          scheduledAt: data.dueAt,
        }),
      },
    ],
    TargetUndoRequested: [
      {
        type: 'target.undo_requested',
        ofStream: ({ data }, { ids, dueAt }) => ({
          ...ids,
          then: data.then,
          reason: data.reason,
          scheduledAt: dueAt,
          newScheduledAt: data.dueAt,
        }),
      },
    ],
    TargetUndoFailed: [
      {
        type: 'target.undo_failed',
        ofStream: ({ data }, { ids }) => ({ ...ids, then: data.then, failure: short(data.failure) }),
      },
    ],
    TargetNativeTimeChanged: [
      {
        type: 'target.rescheduled',
        ofStream: ({ data }, { ids, previousDueAt }) => ({
          ...ids,
          ...timeOf(data),
          previousScheduledAt: previousDueAt,
        }),
      },
    ],
    TargetNativeRevised: [
      {
        type: 'target.revised',
        ofStream: ({ data }, { ids }) => ({ ...ids, ...timeOf(data), postRevision: data.postRevision }),
      },
    ],
    TargetScheduleModeChanged: [
      {
        type: 'target.schedule_mode_changed',
        ofStream: ({ data }, { ids, dueAt }) => ({
          ...ids,
          scheduleMode: data.scheduleMode,
          scheduleModeReason: data.scheduleModeReason,
          scheduledAt: dueAt,
        }),
      },
    ],
    TargetAcceptedByPlatform: [
      {
        type: 'target.processing',
        ofStream: ({ data }, { ids }) => ({
          ...ids,
          attempts: data.attempt,
          askAt: data.askAt,
          processingUntil: data.until,
        }),
      },
    ],
    TargetPublished: [
      {
        type: 'target.published',
        ofStream: ({ data }, { ids }) => ({
          ...ids,
          attempts: data.attempt,
          externalId: data.externalId,
          permalink: data.permalink,
          publishedAt: data.publishedAt,
          settledBy: null,
        }),
      },
    ],
    TargetFailed: [
      {
        type: 'target.failed',
        ofStream: ({ data }, { ids }) => ({
          ...ids,
          attempts: data.attempt,
          failure: short(data.failure),
          settledBy: null,
        }),
      },
    ],
    TargetApprovalLapsed: [
      {
        type: 'target.failed',
        ofStream: (_event, { ids, attempts }) => ({
          ...ids,
          attempts,
          failure: short(approvalTooLate),
          settledBy: null,
        }),
      },
    ],
    TargetRateLimited: [
      {
        type: 'target.rate_limited',
        ofStream: ({ data }, { ids, dueAt }) => ({
          ...ids,
          attempts: data.attempt,
          failure: short(data.failure),
          scheduledAt: dueAt,
          retryAt: data.retryAt,
        }),
      },
    ],
    TargetPublishDeferred: [
      {
        type: 'target.deferred',
        ofStream: ({ data }, { ids, attempts, dueAt }) => ({
          ...ids,
          // At the claim nothing was tried.
          attempts: data.failure.code === cadenceReached.code ? attempts : data.attempt,
          failure: short(data.failure),
          scheduledAt: dueAt,
          retryAt: data.retryAt,
        }),
      },
    ],
    TargetOutcomeUnknown: [
      {
        type: 'target.outcome_unknown',
        ofStream: ({ data }, { ids }) => ({
          ...ids,
          attempts: data.attempt,
          failure: short(data.failure),
          reason: data.reason ?? (data.failure.code === notShown.code ? 'not_shown' : 'no_answer'),
          reconcileAt: data.reconcileAt,
        }),
      },
    ],
    TargetAbsenceObserved: 'a step of settling an unknown outcome',
    // Must distinguish the outcomes as the decider does.
    TargetOutcomeSettled: [
      {
        type: 'target.published',
        when: ({ outcome, failure }) => outcome === 'published' || (outcome === 'failed' && failure === null),
        ofStream: ({ data, occurredAt }, { ids, attempts }) => ({
          ...ids,
          attempts,
          externalId: data.externalId,
          permalink: data.permalink,
          publishedAt: data.publishedAt ?? occurredAt,
          settledBy: data.by,
        }),
      },
      {
        type: 'target.failed',
        when: ({ outcome, failure }) => outcome === 'failed' && failure !== null,
        ofStream: ({ data }, { ids, attempts }) => ({
          ...ids,
          attempts,
          failure: short(data.failure ?? outcomeUnknown),
          settledBy: data.by,
        }),
      },
      {
        type: 'target.requeued',
        when: ({ outcome }) => outcome === 'absent',
        ofStream: ({ data, occurredAt }, { ids, attempts, dueAt }) => ({
          ...ids,
          attempts,
          scheduledAt: dueAt,
          retryAt: data.retryAt ?? occurredAt,
          reason: data.by === 'policy' ? 'assumed_absent' : 'proven_absent',
        }),
      },
    ],
    TargetPlaceLapsed: 'a step of reserving a place of a quota; nothing that a caller sees changes',
    TargetOverdue: [
      {
        type: 'target.overdue',
        ofStream: ({ data }, { ids, attempts, dueAt }) => ({
          ...ids,
          attempts,
          scheduledAt: dueAt,
          retryAt: data.dueAt === dueAt ? null : data.dueAt,
          deferredSince: data.deferredSince ?? null,
        }),
      },
    ],
    TargetRequeued: [
      {
        type: 'target.requeued',
        ofStream: ({ data }, { ids, attempts, dueAt, unknown }) => ({
          ...ids,
          attempts,
          scheduledAt: dueAt,
          retryAt: data.dueAt,
          reason: reasonOf(data.by, unknown),
        }),
      },
    ],
    TargetFirstCommentScheduled: 'a try of the comment, whose outcome is published',
    TargetFirstCommentStarted: 'a try of the comment, whose outcome is published',
    TargetFirstCommentPosted: [
      {
        type: 'target.first_comment_posted',
        ofStream: ({ data }, { ids }) => ({ ...ids, commentExternalId: data.externalId }),
      },
    ],
    TargetFirstCommentFailed: [
      {
        type: 'target.first_comment_failed',
        ofStream: ({ data: { code, message, platformCode } }, { ids }) => ({
          ...ids,
          firstCommentIssue: { code, message, platformCode },
        }),
      },
    ],
    TargetAfterStepScheduled: 'a try of the step; what fails for good is published',
    TargetAfterStepStarted: 'a try of the step; what fails for good is published',
    TargetAfterStepCompleted: 'the post has what was asked for',
    TargetAfterStepFailed: [
      {
        type: 'target.after_step_failed',
        ofStream: ({ data: { step, code, message, platformCode } }, { ids }) => ({
          ...ids,
          afterStepIssue: { step, code, message, platformCode },
        }),
      },
    ],
    TargetRemovedOnPlatform: [
      {
        type: 'target.removed',
        ofStream: ({ data }, { ids, externalId }) => ({ ...ids, externalId, observedAt: data.observedAt }),
      },
    ],
  },

  evolve: (subject, event) => {
    if (event.type === 'TargetScheduled') {
      const { dueAt } = event.data;
      return (
        subject ?? {
          ids: idsOf(event.data),
          dueAt,
          previousDueAt: dueAt,
          attempts: 0,
          externalId: null,
          unknown: false,
        }
      );
    }
    if (subject === null) return null;
    switch (event.type) {
      case 'TargetReleased':
      case 'TargetRescheduled':
      case 'TargetRevised':
      case 'TargetNativeTimeChanged':
      case 'TargetNativeRevised':
        return { ...subject, dueAt: event.data.dueAt, previousDueAt: subject.dueAt };
      case 'TargetPublishStarted':
      case 'TargetFailed':
        return { ...subject, attempts: event.data.attempt, unknown: false };
      case 'TargetOutcomeUnknown':
        return { ...subject, unknown: true };
      case 'TargetAcceptedByPlatform':
        return { ...subject, unknown: false };
      case 'TargetPublished':
        return { ...subject, externalId: event.data.externalId };
      case 'TargetOutcomeSettled':
        return {
          ...subject,
          unknown: false,
          externalId: event.data.outcome === 'published' ? event.data.externalId : subject.externalId,
        };
      default:
        return subject;
    }
  },
};
