import { Type } from 'typebox';
import { Instant, LocalDateTime, Nullable } from '#schemas/common.ts';
import { Named, OpenEnum, said } from '#schemas/published.ts';
import { Attempts, Failure, PlannedTarget, targetEvents } from '#schemas/target.ts';
import { AfterStepName, TargetCancelReason } from '../post-target.ts';
import { exampleTarget, instants, publicEvent, targetIds } from './common.ts';

/** Events of one destination of a post. */

const planned = PlannedTarget.properties;
const ScheduledAt = Type.String({
  format: 'date-time',
  description: 'The instant at which it is due, jitter included.',
});
const ExternalId = Nullable(Type.String({ maxLength: 500, description: 'Its id on the network; null while unknown.' }));
const SettledBy = said(
  Nullable(
    OpenEnum(
      'SettledBy',
      ['reconcile', 'admin', 'policy'],
      'reconcile: the network was asked; admin: an operator decided; policy: the rules of the client did.',
    ),
  ),
  'What determined the outcome; null: the attempt itself.',
);
const RequeueReason = OpenEnum(
  'TargetRequeueReason',
  ['retry_time_reached', 'retry_requested', 'revised', 'proven_absent', 'assumed_absent', 'segment_found'],
  'retry_time_reached: the time of the next attempt after a rate limit has come; retry_requested: a caller retried the target; revised: a caller revised the post after the target had failed; proven_absent: the network confirms that the attempt with the unknown outcome published nothing and never will; assumed_absent: three looks at the network found no post, and the rules of the client let the target be tried again then, once, so it may be published twice; segment_found: the segment of a thread whose outcome was unknown is published, and the next segment follows.',
);
const UnknownReason = OpenEnum(
  'TargetUnknownReason',
  ['no_answer', 'not_shown', 'restored'],
  'no_answer: the network did not answer the call; not_shown: it accepted the post, and has neither shown nor refused it within its time; restored: the service was restored from an older copy, and may have published the post since then. What the network does not show then proves nothing: where it does not have the post, a person decides.',
);
const comment = targetEvents.TargetFirstCommentFailed.properties;
const CommentFailure = Named(
  'FirstCommentFailure',
  Type.Object(
    {
      code: said(comment.code, 'Stable: branch on it. GET /errors/{code} explains it.', {
        examples: ['platform_rejected'],
      }),
      message: said(comment.message, 'What happened, in words for a person.'),
      platformCode: said(comment.platformCode, 'The code that the network gave; null where it gave none.'),
    },
    { description: 'Why the first comment is not under the published post. The post stays published.' },
  ),
);
const step = targetEvents.TargetAfterStepFailed.properties;
const StepFailure = Named(
  'AfterStepFailure',
  Type.Object(
    {
      step: said(AfterStepName, 'The step that failed.'),
      code: said(step.code, 'Stable: branch on it. GET /errors/{code} explains it.', {
        examples: ['platform_rejected'],
      }),
      message: said(step.message, 'What happened, in words for a person.'),
      platformCode: said(step.platformCode, 'The code that the network gave; null where it gave none.'),
    },
    {
      description:
        'Why the published post lacks what follows it, or is not as it was asked for. The post stays published.',
    },
  ),
);
const attempted = { attempts: Attempts, failure: said(Failure, 'Why the attempt did not succeed.') };
const RetryAt = said(Instant, 'When the next attempt starts; `scheduledAt` stays as it was planned.');

const time = {
  scheduledAt: ScheduledAt,
  scheduledLocal: said(
    Nullable(LocalDateTime),
    'The wall-clock time that was asked for, in the zone of the target; null where an instant was.',
    { examples: ['2026-02-02T09:15'] },
  ),
  jitterSeconds: said(
    planned.jitterSeconds,
    'Seconds of delay in `scheduledAt` that `schedule.spreadMinutes` of the post caused.',
  ),
};
const exampleTime = { scheduledAt: instants.later, scheduledLocal: '2026-02-02T09:15', jitterSeconds: 0 };
const exampleNetworkId = '3lgwdn7vd722r';

const tooMany: Failure = {
  category: 'rate_limited',
  code: 'platform_rate_limited',
  message: 'The network accepts no more posts of this account for now.',
  platformCode: '429',
  platformMessage: 'Rate Limit Exceeded',
  retryable: true,
  actor: 'platform',
  mediaId: null,
};
const refused: Failure = {
  ...tooMany,
  category: 'invalid_content',
  code: 'platform_rejected',
  message: 'The network refused the post.',
  platformCode: '400',
  platformMessage: 'Record/text must not be longer than 300 graphemes',
  retryable: false,
  actor: 'user',
};
const noAnswer: Failure = {
  ...tooMany,
  category: 'unknown',
  code: 'outcome_unknown',
  message: 'The network was asked to publish and did not confirm or deny it.',
  platformCode: null,
  platformMessage: null,
  retryable: false,
};
const away: Failure = {
  ...noAnswer,
  category: 'platform_down',
  code: 'platform_down',
  message: 'The network is unavailable.',
  retryable: true,
};

const tooLate: Failure = {
  ...noAnswer,
  category: 'permission',
  code: 'undo_too_late',
  message: 'The network has published the scheduled post, or is about to, and no longer deletes it.',
};
const UndoThen = said(
  OpenEnum(
    'TargetUndoThen',
    ['cancel', 'reschedule', 'revise'],
    'cancel: the target is canceled; reschedule: it is due at another time; revise: it has another content.',
  ),
  'What happens once the network has deleted the scheduled post, or has changed it.',
);
/** A network with a scheduler. */
const onNative = { ...exampleTarget, platform: 'facebook' } as const;
/** A network that shows a post only after it has looked at it. */
const onTiktok = { ...exampleTarget, platform: 'tiktok' } as const;
const exampleNativeId = '104857600000001_122093716334567';

export const targetPublic = {
  'target.scheduled': publicEvent(
    'The service made a target of a post and gave it its due time.',
    Type.Object({
      ...targetIds,
      ...time,
      timezone: said(
        planned.timezone,
        'IANA zone in which its wall-clock time is read: of the account, else of its client, else of the post.',
        { examples: ['Europe/Berlin'] },
      ),
      scheduleMode: said(planned.scheduleMode, 'The mode in use.'),
      scheduleModeReason: said(
        planned.scheduleModeReason,
        'Why the requested mode is not in use, as a code; null where it is.',
        { examples: ['platform_has_no_scheduler'] },
      ),
    }),
    { ...exampleTarget, ...exampleTime, timezone: 'Europe/Berlin', scheduleMode: 'managed', scheduleModeReason: null },
  ),
  'target.rescheduled': publicEvent(
    'A caller moved a target to another time. One that the network’s own scheduler has is moved once that publishes it at the new time, and stays handed over; or once it has deleted it.',
    Type.Object({ ...targetIds, ...time, previousScheduledAt: said(Instant, 'When it was due before.') }),
    { ...exampleTarget, ...exampleTime, previousScheduledAt: instants.due },
  ),
  'target.held': publicEvent(
    'A target is held until its post is approved.',
    Type.Object({ ...targetIds, scheduledAt: ScheduledAt }),
    {
      ...exampleTarget,
      scheduledAt: instants.due,
    },
  ),
  'target.released': publicEvent(
    'An approver released a held target: it is published when it is due. Where that is later than it was planned, neither the wall-clock time that was asked for nor the jitter counts any longer.',
    Type.Object({ ...targetIds, scheduledAt: ScheduledAt }),
    { ...exampleTarget, scheduledAt: instants.due },
  ),
  'target.revised': publicEvent(
    'A caller changed the post: this target is published with the newer content. One that the network’s own scheduler has is revised once that publishes it with that content, and stays handed over; or once it has deleted it.',
    Type.Object({
      ...targetIds,
      ...time,
      postRevision: Type.Integer({
        minimum: 0,
        description: 'Revision of the post whose content the target publishes.',
      }),
    }),
    { ...exampleTarget, ...exampleTime, postRevision: 1 },
  ),
  'target.publishing': publicEvent(
    'The service started an attempt to publish a target.',
    Type.Object({ ...targetIds, attempts: Attempts }),
    {
      ...exampleTarget,
      attempts: 1,
    },
  ),
  'target.processing': publicEvent(
    'The network accepted the post of a target and does not show it yet. The service asks until it does; nothing has to be done.',
    Type.Object({
      ...targetIds,
      attempts: Attempts,
      askAt: said(Instant, 'When the service asks the network for the first time.'),
      processingUntil: said(
        Instant,
        'By when the network shows or refuses it; after that its outcome is unknown: `target.outcome_unknown`.',
      ),
    }),
    { ...onTiktok, attempts: 1, askAt: instants.due, processingUntil: instants.later },
  ),
  'target.handed_to_platform': publicEvent(
    'The network’s own scheduler has the target and publishes it when it is due.',
    Type.Object({
      ...targetIds,
      attempts: Attempts,
      nativeId: Type.String({ maxLength: 500, description: 'Id of the scheduled post on the network.' }),
      scheduledAt: ScheduledAt,
    }),
    { ...onNative, attempts: 1, nativeId: exampleNativeId, scheduledAt: instants.due },
  ),
  'target.undo_requested': publicEvent(
    'A target that the network’s own scheduler has, or that is being handed over to it, is to be taken back, moved or revised: the network is asked to delete it, or to publish it at its new time or with its new content, as soon as it is known to have it.',
    Type.Object({
      ...targetIds,
      then: UndoThen,
      reason: said(Nullable(TargetCancelReason), 'Why it is canceled; null where it is not.'),
      scheduledAt: ScheduledAt,
      newScheduledAt: said(
        Nullable(Instant),
        'Its new time, which with `revise` may be the same; null where it is canceled.',
      ),
    }),
    { ...onNative, then: 'cancel', reason: 'requested', scheduledAt: instants.due, newScheduledAt: null },
  ),
  'target.undo_failed': publicEvent(
    'The network neither deleted nor changed a scheduled post, or one that was being handed over: it has published the post, or publishes it at its time.',
    Type.Object({ ...targetIds, then: UndoThen, failure: said(Failure, 'Why the post was not taken back.') }),
    { ...onNative, then: 'cancel', failure: tooLate },
  ),
  'target.schedule_mode_changed': publicEvent(
    'Another scheduler publishes the target: the network’s own one did not take it, or takes it now.',
    Type.Object({
      ...targetIds,
      scheduleMode: said(planned.scheduleMode, 'The mode in use.'),
      scheduleModeReason: said(
        planned.scheduleModeReason,
        'Why the requested mode is not in use, as a code; null where it is.',
        { examples: ['outside_native_window'] },
      ),
      scheduledAt: ScheduledAt,
    }),
    {
      ...onNative,
      scheduleMode: 'managed',
      scheduleModeReason: 'outside_native_window',
      scheduledAt: instants.due,
    },
  ),
  'target.published': publicEvent(
    'The network published a target.',
    Type.Object({
      ...targetIds,
      attempts: Attempts,
      externalId: ExternalId,
      permalink: said(
        Nullable(Type.String({ maxLength: 2000 })),
        'Its address on the network; null where the network gave none.',
      ),
      publishedAt: said(Instant, 'When the network published it.'),
      settledBy: SettledBy,
    }),
    {
      ...exampleTarget,
      attempts: 1,
      externalId: exampleNetworkId,
      permalink: `https://bsky.app/profile/did:plc:ewvi7nxzyoun6zhxrhs64oiz/post/${exampleNetworkId}`,
      publishedAt: instants.published,
      settledBy: null,
    },
  ),
  'target.failed': publicEvent(
    'A target failed; the service tries again only when a caller retries it.',
    Type.Object({ ...targetIds, ...attempted, settledBy: SettledBy }),
    { ...exampleTarget, attempts: 1, failure: refused, settledBy: null },
  ),
  'target.rate_limited': publicEvent(
    'The network accepts no more posts for now; the service tries again at `retryAt`, within a day. Where the network names a later time, the message of `failure` says which.',
    Type.Object({ ...targetIds, ...attempted, scheduledAt: ScheduledAt, retryAt: RetryAt }),
    { ...exampleTarget, attempts: 1, failure: tooMany, scheduledAt: instants.due, retryAt: instants.later },
  ),
  'target.deferred': publicEvent(
    'An attempt ended before the network was asked to publish; the service tries again at `retryAt`.',
    Type.Object({ ...targetIds, ...attempted, scheduledAt: ScheduledAt, retryAt: RetryAt }),
    { ...exampleTarget, attempts: 1, failure: away, scheduledAt: instants.due, retryAt: instants.later },
  ),
  'target.canceled': publicEvent(
    'A target was canceled: it is not published.',
    Type.Object({ ...targetIds, reason: said(TargetCancelReason, 'Why it was canceled.') }),
    { ...exampleTarget, reason: 'requested' },
  ),
  'target.outcome_unknown': publicEvent(
    'Nobody knows whether the post is out: the network neither confirmed nor denied the publication, or the service was restored from an older copy. The network is asked before any other attempt; with the failure code `outcome_not_askable` it cannot be, and a person has to look at the account.',
    Type.Object({
      ...targetIds,
      ...attempted,
      reason: said(UnknownReason, 'Why nobody knows it.'),
      reconcileAt: said(Instant, 'When the service asks the network for the outcome for the first time.'),
    }),
    { ...exampleTarget, attempts: 1, failure: noAnswer, reason: 'no_answer', reconcileAt: instants.later },
  ),
  'target.overdue': publicEvent(
    'A target is unfinished 15 minutes after its attempt was due, and neither a wait for approval, a rate limit, a deferral nor an unknown outcome explains it; or rate limits and deferrals have kept it beyond its time for 24 hours together. Sent once, until a caller moves or retries the target; it is still published as soon as that is possible.',
    Type.Object({
      ...targetIds,
      attempts: Attempts,
      scheduledAt: ScheduledAt,
      retryAt: said(
        Nullable(Instant),
        'When the attempt is or was due that follows a rate limit, a deferral or a retry; null: at `scheduledAt`.',
      ),
      deferredSince: said(
        Nullable(Instant),
        'Since when rate limits and deferrals keep it beyond its time; null: they do not explain it.',
      ),
    }),
    { ...exampleTarget, attempts: 0, scheduledAt: instants.due, retryAt: null, deferredSince: null },
  ),
  'target.requeued': publicEvent(
    'A target that had stopped is due again.',
    Type.Object({
      ...targetIds,
      attempts: Attempts,
      scheduledAt: ScheduledAt,
      retryAt: RetryAt,
      reason: said(RequeueReason, 'Why it is tried again.'),
    }),
    {
      ...exampleTarget,
      attempts: 1,
      scheduledAt: instants.due,
      retryAt: instants.later,
      reason: 'retry_requested',
    },
  ),
  'target.first_comment_posted': publicEvent(
    'The service posted the first comment under a published target.',
    Type.Object({
      ...targetIds,
      commentExternalId: Type.String({
        maxLength: 500,
        description: 'Id of the comment on the network.',
        examples: ['3lgwdnc2f5k2p'],
      }),
    }),
    { ...exampleTarget, commentExternalId: '3lgwdnc2f5k2p' },
  ),
  'target.first_comment_failed': publicEvent(
    'The service could not post the first comment; the target stays published.',
    Type.Object({ ...targetIds, firstCommentIssue: said(CommentFailure, 'Why there is no first comment.') }),
    {
      ...exampleTarget,
      firstCommentIssue: { code: 'platform_rejected', message: 'The network refused the comment.', platformCode: null },
    },
  ),
  'target.after_step_failed': publicEvent(
    'A published target lacks what its network takes only then, such as its cover, or is seen by fewer people than was asked; the target stays published.',
    Type.Object({ ...targetIds, afterStepIssue: said(StepFailure, 'What is missing, and why.') }),
    {
      ...exampleTarget,
      afterStepIssue: {
        ...{ step: 'cover', code: 'platform_rejected', message: 'The network refused the cover.', platformCode: null },
      },
    },
  ),
  'target.removed': publicEvent(
    'A published target is no longer on the network.',
    Type.Object({
      ...targetIds,
      externalId: ExternalId,
      observedAt: said(Instant, 'When the network reported it as gone, by the clock of the network.'),
    }),
    { ...exampleTarget, externalId: exampleNetworkId, observedAt: instants.last },
  ),
};
