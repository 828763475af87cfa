import { Type } from 'typebox';
import { Instant, LocalDateTime, Nullable } from '#schemas/common.ts';
import { OpenEnum, said } from '#schemas/published.ts';
import { Failure, PlannedTarget, targetEvents } from '#schemas/target.ts';
import { exampleTarget, instants, publicEvent, targetIds } from './common.ts';

/** Events of one destination of a post. */

const planned = PlannedTarget.properties;
const ScheduledAt = Type.String({
  format: 'date-time',
  description: 'The instant at which it is due, jitter included.',
});
const Attempts = Type.Integer({ minimum: 0, description: 'Started attempts, this one included.' });
const ExternalId = Nullable(Type.String({ maxLength: 500, description: 'Its id on the network; null while unknown.' }));
const SettledBy = said(
  Nullable(
    OpenEnum('SettledBy', ['reconcile', 'admin'], 'reconcile: the network was asked; admin: an operator decided.'),
  ),
  'What determined the outcome; null: the attempt itself.',
);
const attempted = { attempts: Attempts, failure: Failure };

const time = {
  scheduledAt: ScheduledAt,
  scheduledLocal: Nullable(LocalDateTime),
  jitterSeconds: planned.jitterSeconds,
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

export const targetPublic = {
  'target.scheduled': publicEvent(
    'A target was scheduled.',
    Type.Object({
      ...targetIds,
      ...time,
      timezone: planned.timezone,
      scheduleMode: planned.scheduleMode,
      scheduleModeReason: planned.scheduleModeReason,
    }),
    { ...exampleTarget, ...exampleTime, timezone: 'Europe/Berlin', scheduleMode: 'managed', scheduleModeReason: null },
  ),
  'target.rescheduled': publicEvent(
    'A target was moved to another time.',
    Type.Object({ ...targetIds, ...time, previousScheduledAt: Instant }),
    { ...exampleTarget, ...exampleTime, previousScheduledAt: instants.due },
  ),
  'target.held': publicEvent('A target waits for approval.', Type.Object({ ...targetIds, scheduledAt: ScheduledAt }), {
    ...exampleTarget,
    scheduledAt: instants.due,
  }),
  'target.released': publicEvent(
    'A held target was released: it is published when it is due.',
    Type.Object({ ...targetIds, scheduledAt: ScheduledAt }),
    { ...exampleTarget, scheduledAt: instants.due },
  ),
  'target.revised': publicEvent(
    'A target will be published with the newer content of its post.',
    Type.Object({
      ...targetIds,
      ...time,
      postRevision: Type.Integer({ minimum: 0, description: 'Revision of the post whose content it publishes.' }),
    }),
    { ...exampleTarget, ...exampleTime, postRevision: 1 },
  ),
  'target.publishing': publicEvent(
    'An attempt to publish has started.',
    Type.Object({ ...targetIds, attempts: Attempts }),
    {
      ...exampleTarget,
      attempts: 1,
    },
  ),
  'target.handed_to_platform': publicEvent(
    'The network has the target and publishes it when it is due.',
    Type.Object({ ...targetIds, attempts: Attempts, externalId: ExternalId, scheduledAt: ScheduledAt }),
    { ...exampleTarget, attempts: 1, externalId: exampleNetworkId, scheduledAt: instants.due },
  ),
  'target.published': publicEvent(
    'A target was published.',
    Type.Object({
      ...targetIds,
      attempts: Attempts,
      externalId: ExternalId,
      permalink: Nullable(Type.String({ maxLength: 2000 })),
      publishedAt: Instant,
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
    'A target failed; it is tried again only on request.',
    Type.Object({ ...targetIds, ...attempted, settledBy: SettledBy }),
    { ...exampleTarget, attempts: 1, failure: refused, settledBy: null },
  ),
  'target.rate_limited': publicEvent(
    'The network accepts no more posts for now; the next attempt is at retryAt.',
    Type.Object({ ...targetIds, ...attempted, retryAt: Instant }),
    { ...exampleTarget, attempts: 1, failure: tooMany, retryAt: instants.later },
  ),
  'target.deferred': publicEvent(
    'An attempt ended before the call to the network; the next attempt is at retryAt.',
    Type.Object({ ...targetIds, ...attempted, retryAt: Instant }),
    { ...exampleTarget, attempts: 1, failure: away, retryAt: instants.later },
  ),
  'target.canceled': publicEvent(
    'A target was canceled.',
    Type.Object({ ...targetIds, reason: targetEvents.TargetCanceled.properties.reason }),
    { ...exampleTarget, reason: 'requested' },
  ),
  'target.outcome_unknown': publicEvent(
    'The network did not confirm or deny the publication; we reconcile with it before any other attempt.',
    Type.Object({ ...targetIds, ...attempted, reconcileAt: Instant }),
    { ...exampleTarget, attempts: 1, failure: noAnswer, reconcileAt: instants.later },
  ),
  'target.requeued': publicEvent(
    'A stopped target will be tried again.',
    Type.Object({
      ...targetIds,
      attempts: Attempts,
      scheduledAt: ScheduledAt,
      reason: Type.Enum(['retry_time_reached', 'retry_requested', 'proven_absent', 'segment_found'], {
        description:
          'proven_absent: the network confirms that the attempt with the unknown outcome published nothing and never will.',
      }),
    }),
    { ...exampleTarget, attempts: 1, scheduledAt: instants.later, reason: 'retry_requested' },
  ),
  'target.first_comment_posted': publicEvent(
    'The first comment is under the published post.',
    Type.Object({ ...targetIds, commentExternalId: Type.String({ maxLength: 500 }) }),
    { ...exampleTarget, commentExternalId: '3lgwdnc2f5k2p' },
  ),
  'target.first_comment_failed': publicEvent(
    'The first comment could not be posted; the target stays published.',
    Type.Object({ ...targetIds, firstCommentIssue: targetEvents.TargetFirstCommentFailed }),
    {
      ...exampleTarget,
      firstCommentIssue: { code: 'platform_rejected', message: 'The network refused the comment.', platformCode: null },
    },
  ),
  'target.removed': publicEvent(
    'A published target is no longer on the network.',
    Type.Object({ ...targetIds, externalId: ExternalId, observedAt: Instant }),
    { ...exampleTarget, externalId: exampleNetworkId, observedAt: instants.last },
  ),
};
