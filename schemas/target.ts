import { type Static, Type } from 'typebox';
import { type EventOf, Instant, LocalDateTime, Nullable, Platform, Uuid } from './common.ts';

/** A target is one destination (connected account) of a post: its course from schedule to settlement. */

const failureCategories = [
  'reauth_required',
  'rate_limited',
  'invalid_content',
  'permission',
  'media',
  'transient',
  'platform_down',
  'duplicate',
  'unknown',
] as const;

export const Failure = Type.Object({
  category: Type.Enum([...failureCategories]),
  /** Our own stable code: served under /errors/{code}. */
  code: Type.String({ minLength: 1, maxLength: 100 }),
  message: Type.String({ maxLength: 2000 }),
  /** The network's own text, made well-formed. */
  platformCode: Nullable(Type.String({ maxLength: 200 })),
  platformMessage: Nullable(Type.String({ maxLength: 2000 })),
  /** Whether trying again can help. */
  retryable: Type.Boolean(),
  /** Who must act. */
  actor: Type.Enum(['user', 'platform', 'service']),
  mediaId: Nullable(Uuid),
});
export type Failure = Static<typeof Failure>;

export const ScheduleMode = Type.Enum(['managed', 'native']);

/** One destination in the post's plan; the target's first event repeats it. */
export const PlannedTarget = Type.Object({
  targetId: Uuid,
  accountId: Uuid,
  /** The account's own client. */
  clientId: Uuid,
  platform: Platform,
  /** The instant at which it is due, jitter included. */
  dueAt: Instant,
  /** The requested wall-clock time, where there was one. */
  scheduledLocal: Nullable(LocalDateTime),
  timezone: Type.String({ maxLength: 100 }),
  jitterSeconds: Type.Integer({ minimum: 0, maximum: 43_200 }),
  scheduleMode: ScheduleMode,
  /** Why the requested mode is not in use. */
  scheduleModeReason: Nullable(Type.String({ maxLength: 200 })),
});
export type PlannedTarget = Static<typeof PlannedTarget>;

/** One post of a thread: its index, from 0, and the number of segments. */
export const Segment = Type.Object({
  index: Type.Integer({ minimum: 0, maximum: 49 }),
  of: Type.Integer({ minimum: 2, maximum: 50 }),
});
export type Segment = Static<typeof Segment>;

const claim = { attempt: Type.Integer({ minimum: 1 }), takeover: Type.Integer({ minimum: 0 }) };

export const targetEvents = {
  TargetScheduled: Type.Object({
    ...PlannedTarget.properties,
    postId: Uuid,
    /** Revision of the post event whose content and plan the target uses. */
    postRevision: Type.Integer({ minimum: 0 }),
  }),
  TargetHeld: Type.Object({ postRevision: Type.Integer({ minimum: 0 }) }),
  TargetReleased: Type.Object({ postRevision: Type.Integer({ minimum: 0 }), dueAt: Instant }),
  TargetRescheduled: Type.Object({
    dueAt: Instant,
    scheduledLocal: Nullable(LocalDateTime),
    jitterSeconds: Type.Integer({ minimum: 0, maximum: 43_200 }),
  }),
  TargetRevised: Type.Object({
    postRevision: Type.Integer({ minimum: 0 }),
    dueAt: Instant,
    scheduledLocal: Nullable(LocalDateTime),
    jitterSeconds: Type.Integer({ minimum: 0, maximum: 43_200 }),
  }),
  TargetCanceled: Type.Object({
    reason: Type.Enum(['requested', 'client_archived', 'approval_rejected', 'post_canceled']),
    /** Revision of the post's intent that this carries out; null when the target was canceled on its own. */
    postRevision: Nullable(Type.Integer({ minimum: 0 })),
  }),
  TargetPublishStarted: Type.Object({ ...claim }),
  TargetPublishCheckpointed: Type.Object({
    ...claim,
    /** `boundary`, or the adapter's own name of the step. */
    step: Type.String({ minLength: 1, maxLength: 50 }),
    data: Type.Unknown(),
    /** Only on `boundary`: the instant at which the call is aborted. */
    deadline: Nullable(Instant),
    /** For a thread: the segment of the step. */
    segment: Type.Optional(Segment),
  }),
  /**
   * One segment of a thread is published. After the last one TargetPublished or TargetOutcomeSettled covers the whole.
   */
  TargetSegmentPublished: Type.Object({
    ...claim,
    segment: Segment,
    externalId: Type.String({ minLength: 1, maxLength: 500 }),
    permalink: Nullable(Type.String({ maxLength: 2000 })),
    publishedAt: Instant,
  }),
  TargetPublishTakenOver: Type.Object({ ...claim }),
  TargetHandedToPlatform: Type.Object({ ...claim, externalId: Type.String({ maxLength: 500 }) }),
  TargetPublished: Type.Object({
    ...claim,
    externalId: Type.String({ minLength: 1, maxLength: 500 }),
    permalink: Nullable(Type.String({ maxLength: 2000 })),
    publishedAt: Instant,
  }),
  TargetFailed: Type.Object({ ...claim, failure: Failure }),
  TargetRateLimited: Type.Object({ ...claim, retryAt: Instant, failure: Failure }),
  TargetPublishDeferred: Type.Object({ ...claim, retryAt: Instant, failure: Failure }),
  TargetOutcomeUnknown: Type.Object({ ...claim, failure: Failure, reconcileAt: Instant }),
  TargetOutcomeSettled: Type.Object({
    outcome: Type.Enum(['published', 'failed', 'absent']),
    externalId: Nullable(Type.String({ maxLength: 500 })),
    permalink: Nullable(Type.String({ maxLength: 2000 })),
    publishedAt: Nullable(Instant),
    failure: Nullable(Failure),
    by: Type.Enum(['reconcile', 'admin']),
  }),
  TargetRequeued: Type.Object({ by: Type.Enum(['schedule', 'retry']), dueAt: Instant }),
  TargetFirstCommentPosted: Type.Object({ externalId: Type.String({ maxLength: 500 }) }),
  TargetFirstCommentFailed: Type.Object({
    code: Type.String({ maxLength: 100 }),
    message: Type.String({ maxLength: 2000 }),
    platformCode: Nullable(Type.String({ maxLength: 200 })),
  }),
  TargetRemovedOnPlatform: Type.Object({ observedAt: Instant }),
} as const;
export type TargetEvent = EventOf<typeof targetEvents>;

export const targetStatuses = [
  'awaiting_approval',
  'pending',
  'handed_to_platform',
  'publishing',
  'published',
  'failed',
  'rate_limited',
  'canceled',
  'outcome_unknown',
] as const;
export type TargetStatus = (typeof targetStatuses)[number];
