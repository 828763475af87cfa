import { Type } from 'typebox';
import { Instant, LocalDateTime, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { ExternalRef } from '#schemas/externalref.ts';
import { ClosedEnum, Named, OpenEnum, said } from '#schemas/published.ts';
import {
  Attempts,
  afterStepNames,
  cancelReasons,
  Failure,
  ScheduleMode,
  segmentStatuses,
  targetStatuses,
  undoStatuses,
} from '#schemas/target.ts';
import { asOfQuery, type Cleaned, InstantInput, Maybe, PlatformInput, paging, stamps, UuidInput } from './common.ts';

/** One destination of a post as answered, and the calls that change it. */

const statusWords =
  'awaiting_approval: held until the post is approved; pending: waits until it is due; handed_to_platform: the network’s own scheduler has it; publishing: an attempt is under way; processing: the network has accepted it and does not show it yet, and is asked until it does; published, failed, canceled: settled; rate_limited: the network takes no more posts for now, and the next attempt is at `retryAt`; outcome_unknown: the network did not answer, and is asked before any other attempt.';
const TargetStatus = OpenEnum('TargetStatus', targetStatuses, statusWords);
const UndoStatus = OpenEnum(
  'UndoStatus',
  undoStatuses,
  'pending: the network is asked to delete the scheduled post, or to publish it at its new time or with its new content, at once or as soon as it is known to have it; done: it has it no longer, or never had it, and the target is canceled or has its new time or content; or it publishes it so, and the target is still handed_to_platform; failed: it has done neither, because it published the post or is about to.',
);
export const TargetCancelReason = OpenEnum(
  'TargetCancelReason',
  cancelReasons,
  'requested: a caller canceled the target; client_archived: a caller archived its client; approval_rejected: an approver rejected the post; post_canceled: the whole post was canceled; account_disconnected: a caller disconnected its account; changes_requested: an approver requested changes, and the post is a draft again; copy_replaced: the post is a copy that still waited when the next copy of the recycled post was made, which takes its place.',
);
const TargetStatusInput = ClosedEnum('TargetStatusInput', targetStatuses, statusWords);

const CommentIssue = Named(
  'FirstCommentIssue',
  Type.Object(
    {
      code: Type.String({ description: 'Stable: branch on it. GET /errors/{code} explains it.' }),
      message: Type.String({ description: 'What happened, in words for a person.' }),
      platformCode: said(Nullable(Type.String()), 'The code that the network gave; null where it gave none.'),
      at: said(Instant, 'When the comment failed.'),
      retryAt: said(Nullable(Instant), 'When the comment is tried again; null where it is not.'),
    },
    { description: 'Why the first comment is not under the published post. The post stays published.' },
  ),
);

export const AfterStepName = OpenEnum(
  'AfterStepName',
  afterStepNames,
  'cover: the picture by which the network shows the video, where it takes it once the post is out. privacy: who sees the post, where the network shows it to fewer people than was asked.',
);
const AfterStepIssue = Named(
  'AfterStepIssue',
  Type.Object(
    {
      step: said(AfterStepName, 'The step that failed.'),
      code: Type.String({ description: 'Stable: branch on it. GET /errors/{code} explains it.' }),
      message: Type.String({ description: 'What happened, in words for a person.' }),
      platformCode: said(Nullable(Type.String()), 'The code that the network gave; null where it gave none.'),
      at: said(Instant, 'When it failed.'),
      retryAt: said(Nullable(Instant), 'When it is tried again; null where it is not.'),
    },
    {
      description:
        'Why the published post lacks what follows it, or is not as it was asked for. The post stays published.',
    },
  ),
);

const SegmentStatus = OpenEnum(
  'SegmentStatus',
  segmentStatuses,
  'pending: waits for its turn; publishing: an attempt is under way; published: it is out; outcome_unknown: the network did not answer, and is asked before any other attempt; failed: the thread stopped before it, and a retry of the target publishes it; canceled: it is not published.',
);

const TargetSegment = Named(
  'TargetSegment',
  Type.Object(
    {
      index: Type.Integer({ minimum: 0, maximum: 49, description: 'Its place in the thread, from 0.' }),
      status: said(SegmentStatus, 'Where it stands.'),
      externalId: said(Nullable(Type.String()), 'Its id on the network; null before it is published.'),
      permalink: said(Nullable(Type.String()), 'Its address on the network; null while unknown.'),
      publishedAt: said(Nullable(Instant), 'When the network published it; null before.'),
    },
    { description: 'One message of a thread on one account. Each is published on its own, in order.' },
  ),
);

export const PostTarget = Named(
  'PostTarget',
  Type.Object(
    {
      id: said(Uuid, 'Id of the target.'),
      object: Type.Literal('post_target', { description: 'The kind of resource.' }),
      ...stamps,
      postId: said(Uuid, 'The post that it is a destination of.'),
      clientId: said(Uuid, 'The client of its account.'),
      accountId: said(Uuid, 'The connected account that it is published to.'),
      platform: said(Platform, 'The network of its account.'),
      status: said(TargetStatus, 'Where it stands between its schedule and its end.'),
      scheduledAt: Type.String({
        format: 'date-time',
        description:
          'The instant at which it is due, jitter included. A retry, a rate limit or a deferral leaves it as it is; only a reschedule, a revise or a release moves it.',
        examples: ['2026-02-02T08:00:00.000Z'],
      }),
      scheduledLocal: said(
        Nullable(LocalDateTime),
        'The wall-clock time that was asked for, in `timezone`; null where an instant was, or where a release came after that time and moved the target.',
      ),
      timezone: Type.String({
        description:
          'IANA zone in which its wall-clock time is read: of the account, else of its client, else of the post.',
        examples: ['Europe/Berlin'],
      }),
      jitterSeconds: Type.Integer({
        minimum: 0,
        maximum: 43_200,
        description: 'Seconds of delay in `scheduledAt` that `schedule.spreadMinutes` caused.',
      }),
      scheduleMode: said(ScheduleMode, 'The mode in use.'),
      scheduleModeReason: said(
        Nullable(Type.String()),
        'Why the requested mode is not in use, as a code; null where it is. platform_has_no_scheduler: the network has none; setting_not_schedulable: an override, such as a story or a video that is not public, cannot be scheduled there; due_now: the post was to go out at once; outside_native_window: the network takes no post of that time (facebook: 10 minutes to 29 days ahead; youtube: 15 minutes to 548 days); network_unavailable: the network did not take the post, and this service publishes it at its time.',
        { examples: ['outside_native_window'] },
      ),
      attempts: Attempts,
      publishedAt: said(Nullable(Instant), 'When the network published it; null before.'),
      externalId: said(Nullable(Type.String()), 'Its id on the network; null while unknown.'),
      permalink: said(Nullable(Type.String()), 'Its address on the network; null while unknown.'),
      segments: Type.Array(TargetSegment, {
        maxItems: 50,
        description: 'The messages of its thread, in order; empty where it is published as one post.',
      }),
      failure: said(Nullable(Failure), 'Why the last attempt did not succeed; null where nothing is wrong.'),
      retryAt: said(
        Nullable(Instant),
        'When the next attempt starts after a rate limit, a deferral or a retry, or after an unknown outcome is settled; null before the first attempt and where none is planned.',
      ),
      unknownSince: said(
        Nullable(Instant),
        'Since when the service does not know whether the network has published it: the first time, where several attempts had no outcome; null where the outcome is known.',
      ),
      processingUntil: said(
        Nullable(Instant),
        'While `processing`: by when its network shows or refuses it; its outcome is unknown after that. Null otherwise.',
      ),
      undo: said(
        Nullable(UndoStatus),
        'What became of the last cancel, reschedule or revise that was asked for while the network’s own scheduler had the target, or of a cancel while the target was being handed over to it; null: none was.',
      ),
      cancelReason: said(Nullable(TargetCancelReason), 'Why it is canceled; null while it is not.'),
      firstComment: said(Nullable(Type.String()), 'The comment that follows the post; null: none.'),
      firstCommentExternalId: said(
        Nullable(Type.String()),
        'Id of the first comment on the network; null while there is none.',
      ),
      firstCommentIssue: said(Nullable(CommentIssue), 'Why the first comment failed; null where it did not.'),
      afterStepIssues: Type.Array(AfterStepIssue, {
        description:
          'What a published target lacks of that which its network takes only once the post is out, such as the cover of a video on youtube, or is otherwise than it was asked for, such as a video that youtube made private; each step at most once.',
      }),
      title: said(
        Nullable(Type.String()),
        'The title that the network gets: on youtube the override, else the first line of the content; on pinterest the override. Null: none, or none that the network takes.',
      ),
      content: Type.String({
        description: 'The text that is published; for a thread, that of its first segment, as are `mediaIds`.',
      }),
      mediaIds: Type.Array(Uuid, { description: 'The media that are published, in order.' }),
      overrides: Type.Record(Type.String(), Type.Unknown(), {
        description: 'The settings of its network by key, as they were sent.',
      }),
    },
    { description: 'One destination of a post: its own time, its own outcome.' },
  ),
);

/** Exactly one of the two. */
export const PostTargetReschedule = Named(
  'PostTargetReschedule',
  Type.Object(
    {
      scheduledAt: Maybe(InstantInput('The new instant; the target loses its jitter.')),
      shiftMinutes: Maybe(
        Type.Integer({
          minimum: -525_600,
          maximum: 525_600,
          description: 'Moves the target by so many minutes, backward where negative; it keeps its jitter.',
        }),
      ),
    },
    { description: 'Exactly one of the two members.' },
  ),
);
export type PostTargetReschedule = Cleaned<typeof PostTargetReschedule>;

export const PostTargetQuery = Type.Object({
  ...paging,
  ...asOfQuery,
  postId: Maybe(said(UuidInput, 'Only targets of this post.')),
  clientId: Maybe(said(UuidInput, 'Only targets of this client’s accounts.')),
  accountId: Maybe(said(UuidInput, 'Only targets of this account.')),
  platform: Maybe(Type.Array(PlatformInput, { minItems: 1, description: 'One network, or several with commas.' })),
  status: Maybe(Type.Array(TargetStatusInput, { minItems: 1, description: 'One status, or several with commas.' })),
  externalRef: Maybe(said(ExternalRef, 'Only targets of posts with this reference of yours.')),
  from: Maybe(InstantInput('Due at or after.')),
  to: Maybe(InstantInput('Due before.')),
});
