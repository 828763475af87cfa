import { type Static, Type } from 'typebox';
import { type EventOf, Instant, LocalDateTime, Nullable, Platform, Uuid } from './common.ts';
import { Named, OpenEnum, said } from './published.ts';

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

const FailureCategory = OpenEnum(
  'FailureCategory',
  failureCategories,
  'The kind of a failure. reauth_required: the account must be connected again; rate_limited: the network takes no more posts for now; invalid_content: the network refuses the text, a file’s place or a setting; permission: the account may not do this; media: a file cannot be published; transient, platform_down: the network failed; duplicate: the network has the same post already; unknown: the network gave no reason that we know.',
);
const FailureActor = OpenEnum(
  'FailureActor',
  ['user', 'platform', 'service'],
  'Who must act: you, the network, or this service.',
);

export const Failure = Named(
  'Failure',
  Type.Object(
    {
      category: said(FailureCategory, 'The kind of the failure.'),
      code: Type.String({
        minLength: 1,
        maxLength: 100,
        description: 'Stable: branch on it. GET /errors/{code} explains it.',
        examples: ['platform_rejected'],
      }),
      message: Type.String({ maxLength: 2000, description: 'The failure in words, for a person.' }),
      // The network's own text, made well-formed.
      platformCode: said(
        Nullable(Type.String({ maxLength: 200 })),
        'The code that the network gave; null where it gave none.',
      ),
      platformMessage: said(
        Nullable(Type.String({ maxLength: 2000 })),
        'The words of the network; null where it gave none.',
      ),
      retryable: Type.Boolean({ description: 'Whether trying again can help without a change.' }),
      actor: said(FailureActor, 'Who must act.'),
      mediaId: said(Nullable(Uuid), 'The file at fault; null where the failure is about no single file.'),
    },
    { description: 'Why an attempt to publish did not succeed.' },
  ),
);
export type Failure = Static<typeof Failure>;

export const scheduleModes = ['managed', 'native'] as const;
export const ScheduleMode = OpenEnum(
  'ScheduleMode',
  scheduleModes,
  'managed: this service publishes at the due instant; native: the network’s own scheduler does.',
);

/** One meaning in the row and in every event. */
export const Attempts = Type.Integer({
  minimum: 0,
  description:
    'Attempts to publish so far, the one under way included. One that fails before it could begin counts too; a takeover by another process does not.',
});

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
  /** The rule of the client as the post was planned. Absent: a target that is approved late goes out at once. */
  approvalLate: Type.Optional(Type.Literal('fail')),
});
export type PlannedTarget = Static<typeof PlannedTarget>;

const { dueAt, scheduledLocal, timezone, jitterSeconds, scheduleMode, scheduleModeReason } = PlannedTarget.properties;
/** The time of a target, and the zone and the mode that follow from it. */
export const TargetTime = Type.Object({
  dueAt,
  scheduledLocal,
  timezone,
  jitterSeconds,
  scheduleMode,
  scheduleModeReason,
});
export type TargetTime = Static<typeof TargetTime>;

/** One post of a thread: its index, from 0, and the number of segments. */
export const Segment = Type.Object({
  index: Type.Integer({ minimum: 0, maximum: 49 }),
  of: Type.Integer({ minimum: 2, maximum: 50 }),
});
export type Segment = Static<typeof Segment>;

/** Why what follows a published post was not done: its first comment, its cover. */
const FollowUpIssue = Type.Object({
  code: Type.String({ maxLength: 100 }),
  message: Type.String({ maxLength: 2000 }),
  platformCode: Nullable(Type.String({ maxLength: 200 })),
});
export type FollowUpIssue = Static<typeof FollowUpIssue>;

/**
 * What some networks take of a post only once it is out. Such a step changes how the post looks and adds nothing, and done twice it
 * leaves what it leaves done once.
 */
const stepNames = ['cover'] as const;
export type StepName = (typeof stepNames)[number];
const AfterStep = Type.Enum([...stepNames]);
/** `privacy` is no call of ours: the network itself shows the post to fewer people than was asked. */
export const afterStepNames = [...stepNames, 'privacy'] as const;
export type AfterStepName = (typeof afterStepNames)[number];

/** Counts the tries of one comment, or of one step, from 1. */
const FollowUpTry = Type.Integer({ minimum: 1 });
/** Why a target is canceled. */
export const cancelReasons = [
  'requested',
  'client_archived',
  'approval_rejected',
  'post_canceled',
  'account_disconnected',
  'changes_requested',
  'copy_replaced',
] as const;
export type TargetCancelReason = (typeof cancelReasons)[number];
const CancelReason = Type.Enum([...cancelReasons]);

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
  /** The target goes out with the content of this revision of its post. A failed one stays failed until it is requeued. */
  TargetRevised: Type.Object({ postRevision: Type.Integer({ minimum: 0 }), ...TargetTime.properties }),
  TargetCanceled: Type.Object({
    reason: CancelReason,
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
  /** The network's own scheduler has the post. */
  TargetHandedToPlatform: Type.Object({
    ...claim,
    /** Id of the scheduled post on the network. */
    nativeId: Type.String({ minLength: 1, maxLength: 500 }),
    /** When the network publishes it. */
    dueAt: Instant,
  }),
  /**
   * The network does not publish the scheduled post as it is any more: it is deleted there, and then the target is canceled, or
   * due at another time or with another content, or the network takes that time and that content for it. Before the answer to a
   * hand-over is known it is a cancel, and stands for what the network turns out to have.
   */
  TargetUndoRequested: Type.Object({
    then: Type.Enum(['cancel', 'reschedule', 'revise']),
    /** That of TargetCanceled; null with the others. */
    reason: Nullable(CancelReason),
    /** That of TargetCanceled or TargetRevised; null with `reschedule`. */
    postRevision: Nullable(Type.Integer({ minimum: 0 })),
    /** Those of TargetRescheduled or TargetRevised; null with `cancel`. */
    dueAt: Nullable(Instant),
    scheduledLocal: Nullable(LocalDateTime),
    jitterSeconds: Nullable(Type.Integer({ minimum: 0, maximum: 43_200 })),
    /** The others of TargetRevised, with `revise` alone. */
    revised: Type.Optional(Type.Pick(TargetTime, ['timezone', 'scheduleMode', 'scheduleModeReason'])),
  }),
  /** The network publishes the same scheduled post at another time, which TargetUndoRequested wanted. */
  TargetNativeTimeChanged: Type.Object({
    ...claim,
    nativeId: Type.String({ minLength: 1, maxLength: 500 }),
    dueAt: Instant,
    scheduledLocal: Nullable(LocalDateTime),
    jitterSeconds: Type.Integer({ minimum: 0, maximum: 43_200 }),
  }),
  /**
   * The network publishes the same scheduled post with the content of this revision of its post, at this time, which
   * TargetUndoRequested wanted.
   */
  TargetNativeRevised: Type.Object({
    ...claim,
    nativeId: Type.String({ minLength: 1, maxLength: 500 }),
    postRevision: Type.Integer({ minimum: 0 }),
    ...TargetTime.properties,
  }),
  /** The network neither deleted the scheduled post nor took another time or content for it. */
  TargetUndoFailed: Type.Object({ then: Type.Enum(['cancel', 'reschedule', 'revise']), failure: Failure }),
  TargetScheduleModeChanged: Type.Object({
    scheduleMode: ScheduleMode,
    scheduleModeReason: Nullable(Type.String({ maxLength: 200 })),
  }),
  TargetPublished: Type.Object({
    ...claim,
    externalId: Type.String({ minLength: 1, maxLength: 500 }),
    permalink: Nullable(Type.String({ maxLength: 2000 })),
    publishedAt: Instant,
  }),
  /** The network has the post, and shows or refuses it later. */
  TargetAcceptedByPlatform: Type.Object({
    ...claim,
    /** How the network is asked for it, in its adapter's own form. */
    handle: Type.Unknown(),
    askAt: Instant,
    /** The instant from which the outcome is unknown. */
    until: Instant,
  }),
  TargetFailed: Type.Object({ ...claim, failure: Failure }),
  /** Nobody had approved the post when the target was due, and the client's rules let it fail then. */
  TargetApprovalLapsed: Type.Object({ dueAt: Instant }),
  TargetRateLimited: Type.Object({ ...claim, retryAt: Instant, failure: Failure }),
  TargetPublishDeferred: Type.Object({ ...claim, retryAt: Instant, failure: Failure }),
  TargetOutcomeUnknown: Type.Object({
    ...claim,
    failure: Failure,
    reconcileAt: Instant,
    /** Where the network turns out to have nothing, no other attempt starts before. Absent: it named no instant. */
    retryAt: Type.Optional(Instant),
    /** Absent: the network gave no answer. */
    reason: Type.Optional(Type.Enum(['restored'])),
  }),
  /** A look at the network found no post of an attempt with an unknown outcome; the client's rules count such looks. */
  TargetAbsenceObserved: Type.Object({
    ...claim,
    /** When the network was asked. */
    observedAt: Instant,
  }),
  TargetOutcomeSettled: Type.Object({
    outcome: Type.Enum(['published', 'failed', 'absent']),
    externalId: Nullable(Type.String({ maxLength: 500 })),
    permalink: Nullable(Type.String({ maxLength: 2000 })),
    publishedAt: Nullable(Instant),
    failure: Nullable(Failure),
    by: Type.Enum(['reconcile', 'admin', 'policy']),
    /** With `absent`: when the next attempt starts. Absent: at once. */
    retryAt: Type.Optional(Instant),
  }),
  /**
   * No worker has finished the target for a while, or it was rescheduled for a day. Once, until a person gives it another
   * time or retries it.
   */
  TargetOverdue: Type.Object({
    /** When its attempt was due, or will be. */
    dueAt: Instant,
    /** Since when deferrals and rate limits keep it beyond its time. Absent: they do not explain it. */
    deferredSince: Type.Optional(Instant),
  }),
  /**
   * The place that a quota held for the next append of this stream was given back; a pending write fails at this
   * revision.
   */
  TargetPlaceLapsed: Type.Object({}),
  TargetRequeued: Type.Object({
    by: Type.Enum(['schedule', 'retry', 'revise']),
    /** When the next attempt starts. The target's own `dueAt` stays as it was planned. */
    dueAt: Instant,
  }),
  /** A try of the first comment is due: the first one with the publication, a later one after a refusal. */
  TargetFirstCommentScheduled: Type.Object({ try: FollowUpTry, dueAt: Instant, refusal: Nullable(FollowUpIssue) }),
  /** The network's answer comes by the deadline; after it nobody waits for one. */
  TargetFirstCommentStarted: Type.Object({ try: FollowUpTry, deadline: Instant }),
  TargetFirstCommentPosted: Type.Object({ externalId: Type.String({ maxLength: 500 }) }),
  TargetFirstCommentFailed: FollowUpIssue,
  /** A try of a step is due: the first one with the publication, a later one after a refusal or a lost answer. */
  TargetAfterStepScheduled: Type.Object({
    step: AfterStep,
    try: FollowUpTry,
    dueAt: Instant,
    refusal: Nullable(FollowUpIssue),
  }),
  /** The network's answer comes by the deadline; after it the step is tried again. */
  TargetAfterStepStarted: Type.Object({ step: AfterStep, try: FollowUpTry, deadline: Instant }),
  TargetAfterStepCompleted: Type.Object({ step: AfterStep }),
  /** The target stays published, without what the step would have given it. */
  TargetAfterStepFailed: Type.Object({ step: Type.Enum([...afterStepNames]), ...FollowUpIssue.properties }),
  TargetRemovedOnPlatform: Type.Object({ observedAt: Instant }),
} as const;
export type TargetEvent = EventOf<typeof targetEvents>;

export const undoStatuses = ['pending', 'done', 'failed'] as const;

export const targetStatuses = [
  'awaiting_approval',
  'pending',
  'handed_to_platform',
  'publishing',
  'processing',
  'published',
  'failed',
  'rate_limited',
  'canceled',
  'outcome_unknown',
] as const;
export type TargetStatus = (typeof targetStatuses)[number];

/** Of one segment of a thread. */
export const segmentStatuses = [
  'pending',
  'publishing',
  'published',
  'failed',
  'outcome_unknown',
  'canceled',
] as const satisfies readonly TargetStatus[];
export type SegmentStatus = (typeof segmentStatuses)[number];
