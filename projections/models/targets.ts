import { titleFor } from '#domain/platforms/index.ts';
import { type ContentBody, contentFor, firstCommentOf } from '#domain/post/content.ts';
import { approvalTooLate } from '#domain/publish-failures.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { instantOf, type Platform } from '#schemas/common.ts';
import type {
  Failure,
  PlannedTarget,
  SegmentStatus,
  TargetCancelReason,
  TargetEvent,
  TargetStatus,
  undoStatuses,
} from '#schemas/target.ts';
import { change, defineModel, formerModel, type Row, unchanged } from '../engine/model.ts';
import { targetPublisher } from '../webhooks/render/target.ts';
import {
  commentFailed,
  commentPosted,
  commentScheduled,
  commentStarted,
  type FollowUpColumns,
  inRealTime,
  noFollowUps,
  stepCompleted,
  stepFailed,
  stepScheduled,
  stepStarted,
} from './follow-ups.ts';
import { attemptAtSql, deferred, unfinished } from './overdue-targets.ts';
import { countedSql, isAskedSql, slotAtSql, waitingSql } from './sql.ts';

/** Parts of a target's row that many of its events set, and the folds of its network's own scheduler. */

/** `moving`: pending, and the target is wanted at another time or with another content; until then it may still be canceled. */
type UndoStatus = (typeof undoStatuses)[number] | 'moving';

interface NativeRow {
  readonly status: TargetStatus;
  readonly due_at: string;
  readonly retry_at: string | null;
  readonly next_action_at: string | null;
  readonly failure: Failure | null;
  readonly schedule_mode: PlannedTarget['scheduleMode'];
  readonly schedule_mode_reason: string | null;
  readonly undo: UndoStatus | null;
  readonly overdue: boolean;
  readonly deferred_since: string | null;
  readonly applied_revision: number;
  readonly approval_late: PlannedTarget['approvalLate'] | null;
}

type DataOf<T extends TargetEvent['type']> = Extract<TargetEvent, { type: T }>['data'];

/** A target that is to be handed to the network's own scheduler has work at once. */
const atOnce = (mode: PlannedTarget['scheduleMode'], { metadata }: DecodedEvent): Partial<NativeRow> =>
  mode === 'native' ? { next_action_at: instantOf(metadata) } : {};

const settled = { retry_at: null, next_action_at: null } as const;

const pending = (dueAt: string, retryAt: string | null = null) =>
  ({
    status: 'pending',
    due_at: dueAt,
    retry_at: retryAt,
    next_action_at: retryAt ?? dueAt,
    failure: null,
  }) as const;

/** Nothing keeps the target beyond its time, as far as the service knows. */
const inTime = { overdue: false, deferred_since: null } as const;

/** As the target's state counts it. */
const deferredBy = (
  { deferred_since: since, due_at: due }: Pick<NativeRow, 'deferred_since' | 'due_at'>,
  { metadata }: DecodedEvent,
) => ({ deferred_since: since ?? (instantOf(metadata) < due ? due : instantOf(metadata)) });

/** A held target has work only where it fails if nobody has approved it in time. */
const held = (row: Pick<NativeRow, 'approval_late'>, dueAt: string) =>
  ({ due_at: dueAt, retry_at: null, next_action_at: row.approval_late === 'fail' ? dueAt : null }) as const;

/** A held target stays held through a reschedule or a revision; any other open one becomes pending again. */
const due = (
  row: Pick<NativeRow, 'status' | 'schedule_mode' | 'approval_late'>,
  dueAt: string,
  event: DecodedEvent,
): Partial<NativeRow> => ({
  ...(row.status === 'awaiting_approval'
    ? held(row, dueAt)
    : { ...pending(dueAt), ...atOnce(row.schedule_mode, event) }),
  ...inTime,
});

/** A post that was taken back from the network's own scheduler, or that the network turned out not to have. */
const undone = ({ undo }: Pick<NativeRow, 'undo'>): Partial<NativeRow> =>
  undo === 'pending' || undo === 'moving' ? { undo: 'done' } : {};

/** One that was canceled while it was handed over is taken back at once. */
const handedOver = <R extends NativeRow>(
  row: R,
  { dueAt }: DataOf<'TargetHandedToPlatform'>,
  event: DecodedEvent,
): R => ({
  ...row,
  status: 'handed_to_platform',
  failure: null,
  retry_at: null,
  deferred_since: null,
  next_action_at: row.undo === 'pending' ? instantOf(event.metadata) : dueAt,
});

const undoRequested = <R extends NativeRow>(
  row: R,
  { then, postRevision }: DataOf<'TargetUndoRequested'>,
  event: DecodedEvent,
): R => ({
  ...row,
  undo: then === 'cancel' ? 'pending' : 'moving',
  next_action_at: instantOf(event.metadata),
  applied_revision: Math.max(row.applied_revision, postRevision ?? 0),
});

const asRevised = (data: DataOf<'TargetRevised'> | DataOf<'TargetNativeRevised'>) => ({
  ...{ schedule_mode: data.scheduleMode, schedule_mode_reason: data.scheduleModeReason },
  ...{ scheduled_local: data.scheduledLocal, timezone: data.timezone, jitter_seconds: data.jitterSeconds },
  ...{ post_revision: data.postRevision, applied_revision: data.postRevision },
});

const undoFailed = <R extends NativeRow>(row: R): R => ({ ...row, undo: 'failed', next_action_at: row.due_at });

const modeChanged = <R extends NativeRow>(
  row: R,
  { scheduleMode, scheduleModeReason }: DataOf<'TargetScheduleModeChanged'>,
  event: DecodedEvent,
): R => ({
  ...row,
  schedule_mode: scheduleMode,
  schedule_mode_reason: scheduleModeReason,
  // Another event of the same append may have set a later attempt. An earlier one was to hand the target over.
  ...(row.status === 'pending' && (row.retry_at === null || (scheduleMode === 'managed' && row.retry_at < row.due_at))
    ? { retry_at: null, next_action_at: row.due_at, ...atOnce(scheduleMode, event) }
    : {}),
});

interface SegmentOut {
  readonly externalId: string;
  readonly permalink: string | null;
  readonly publishedAt: string;
}

/** Segments that are out, in order, and how many the thread has. */
export interface SegmentsOut {
  readonly of: number;
  readonly out: readonly SegmentOut[];
}

/** Status of the first segment that is not out, and of each later one. */
const restOf: Readonly<Record<TargetStatus, readonly [next: SegmentStatus, later: SegmentStatus]>> = {
  awaiting_approval: ['pending', 'pending'],
  pending: ['pending', 'pending'],
  handed_to_platform: ['pending', 'pending'],
  publishing: ['publishing', 'pending'],
  // No network that has it has threads.
  processing: ['publishing', 'pending'],
  published: ['published', 'published'],
  failed: ['failed', 'failed'],
  rate_limited: ['pending', 'pending'],
  canceled: ['canceled', 'canceled'],
  outcome_unknown: ['outcome_unknown', 'pending'],
};

export const addSegment = (
  known: SegmentsOut | null,
  { segment, externalId, permalink, publishedAt }: SegmentOut & { readonly segment: { readonly of: number } },
): SegmentsOut => ({ of: segment.of, out: [...(known?.out ?? []), { externalId, permalink, publishedAt }] });

/**
 * The segments of a thread as a target shows them. The row holds those that are out; the status says the rest.
 * @param composed segments of the post's content; once a segment is out, the events say how many there are
 */
export const renderSegments = (status: TargetStatus, known: SegmentsOut | null, composed: number) => {
  const { of, out } = known ?? { of: composed, out: [] };
  if (of === 1) return [];
  const [next, later] = restOf[status];
  return Array.from({ length: of }, (_none, index) => {
    const post = out[index];
    return {
      index,
      status: post !== undefined ? 'published' : index === out.length ? next : later,
      externalId: post?.externalId ?? null,
      permalink: post?.permalink ?? null,
      publishedAt: post?.publishedAt ?? null,
    };
  });
};

/**
 * Targets of posts and their progress. The content is that of the target's revision of its post and is joined when a
 * target is read. The file is long because the columns, their fold, the rendering and the queries change together, and
 * every event of a target changes one.
 */

interface Own extends FollowUpColumns {
  readonly post_id: string;
  readonly client_id: string;
  readonly account_id: string;
  readonly platform: Platform;
  readonly status: TargetStatus;
  readonly due_at: string;
  readonly scheduled_local: string | null;
  readonly timezone: string;
  readonly jitter_seconds: number;
  readonly schedule_mode: PlannedTarget['scheduleMode'];
  readonly schedule_mode_reason: string | null;
  readonly approval_late: PlannedTarget['approvalLate'] | null;
  readonly attempts: number;
  readonly takeover: number;
  readonly published_at: string | null;
  readonly external_id: string | null;
  readonly permalink: string | null;
  readonly segments: SegmentsOut | null;
  readonly failure: Failure | null;
  /** When the next attempt starts, or the running one was to; null: at `due_at`. */
  readonly retry_at: string | null;
  /**
   * When a worker must act on the target next; null when none must. While publishing: the time of its last event.
   */
  readonly next_action_at: string | null;
  /** As in the target's state. */
  readonly overdue: boolean;
  /** As in the target's state. */
  readonly deferred_since: string | null;
  /** As in the target's state. */
  readonly unknown_since: string | null;
  /** While its network processes it: when its outcome counts as unknown. */
  readonly processing_until: string | null;
  /** How far the network has deleted a post that its own scheduler has; null: nobody asked for it. */
  readonly undo: UndoStatus | null;
  readonly cancel_reason: TargetCancelReason | null;
  readonly post_revision: number;
  readonly applied_revision: number;
}
export type TargetRow = Row<Own>;

const targetsByEvents = defineModel<Own, TargetEvent>({
  name: 'post_targets',
  kind: 'target',
  publisher: targetPublisher,
  columns: {
    post_id: 'uuid',
    client_id: 'uuid',
    account_id: 'uuid',
    platform: 'text',
    status: 'text',
    due_at: 'timestamptz',
    scheduled_local: 'text',
    timezone: 'text',
    jitter_seconds: 'int4',
    schedule_mode: 'text',
    schedule_mode_reason: 'text',
    approval_late: 'text',
    attempts: 'int4',
    takeover: 'int4',
    published_at: 'timestamptz',
    external_id: 'text',
    permalink: 'text',
    segments: 'jsonb',
    failure: 'jsonb',
    retry_at: 'timestamptz',
    next_action_at: 'timestamptz',
    overdue: 'bool',
    deferred_since: 'timestamptz',
    unknown_since: 'timestamptz',
    processing_until: 'timestamptz',
    follow_ups: 'jsonb',
    after_step_issues: 'jsonb',
    first_comment_issue: 'jsonb',
    first_comment_id: 'text',
    undo: 'text',
    cancel_reason: 'text',
    post_revision: 'int4',
    applied_revision: 'int4',
  },
  indexes: [
    { on: '(workspace_id, due_at, id)' },
    { on: '(post_id, due_at, id)' },
    { on: '(account_id, due_at, id)' },
    { on: '(client_id, due_at, id)' },
    // Holds every column that posts are counted by, so that the count reads no rows.
    {
      on: `(workspace_id, published_at) include (post_id, platform, client_id, account_id, revision)
        where published_at is not null`,
    },
    // The publisher searches one network at a time. Targets of which a network is asked keep a past time for as long as
    // their outcome is open: if this index held them, each search would pass all of them.
    { on: `(platform, next_action_at, id) where next_action_at is not null and not ${isAskedSql()}` },
    { on: `(next_action_at, id) where next_action_at is not null and ${isAskedSql()}` },
    { on: `(${attemptAtSql}, id) where ${unfinished}` },
    // Of lists by status and network; see target-queries.ts.
    { on: '(workspace_id, status, platform, due_at, id)' },
    { on: '(client_id, status, platform, due_at, id)' },
    { on: '(account_id, status, due_at, id)' },
    // How often an account publishes; see cadence-slots.ts.
    { on: `(account_id, ${slotAtSql}, id) where ${countedSql}` },
    { on: `(account_id, retry_at, id) where ${waitingSql}` },
    { on: `(deferred_since, id) where ${deferred}` },
  ],
  on: {
    TargetScheduled: (_row, data, event) => ({
      post_id: data.postId,
      client_id: data.clientId,
      account_id: data.accountId,
      platform: data.platform,
      ...pending(data.dueAt),
      ...atOnce(data.scheduleMode, event),
      scheduled_local: data.scheduledLocal,
      timezone: data.timezone,
      jitter_seconds: data.jitterSeconds,
      schedule_mode: data.scheduleMode,
      schedule_mode_reason: data.scheduleModeReason,
      approval_late: data.approvalLate ?? null,
      attempts: 0,
      takeover: 0,
      published_at: null,
      external_id: null,
      permalink: null,
      segments: null,
      ...inTime,
      unknown_since: null,
      processing_until: null,
      ...noFollowUps,
      undo: null,
      cancel_reason: null,
      post_revision: data.postRevision,
      applied_revision: data.postRevision,
    }),
    TargetHeld: change((row, { postRevision }) => ({
      ...row,
      ...held(row, row.due_at),
      status: 'awaiting_approval',
      applied_revision: Math.max(row.applied_revision, postRevision),
    })),
    TargetReleased: change((row, { postRevision, dueAt }, event) => ({
      ...row,
      ...pending(dueAt),
      ...atOnce(row.schedule_mode, event),
      ...(dueAt === row.due_at ? {} : { scheduled_local: null, jitter_seconds: 0 }),
      ...inTime,
      applied_revision: Math.max(row.applied_revision, postRevision),
    })),
    TargetRescheduled: change((row, { dueAt, scheduledLocal, jitterSeconds }, event) => ({
      ...row,
      ...due(row, dueAt, event),
      ...undone(row),
      scheduled_local: scheduledLocal,
      jitter_seconds: jitterSeconds,
    })),
    TargetRevised: change((row, data, event) => ({
      ...row,
      ...undone(row),
      ...asRevised(data),
      // A failed target stays failed until it is requeued.
      ...(row.status === 'failed'
        ? { due_at: data.dueAt, ...inTime }
        : due({ ...row, schedule_mode: data.scheduleMode }, data.dueAt, event)),
    })),
    TargetCanceled: change((row, { reason, postRevision }) => ({
      ...row,
      ...settled,
      ...undone(row),
      status: 'canceled',
      cancel_reason: reason,
      applied_revision: Math.max(row.applied_revision, postRevision ?? 0),
    })),
    TargetPublishStarted: change((row, { attempt, takeover }, event) => ({
      ...row,
      status: 'publishing',
      attempts: attempt,
      takeover,
      failure: null,
      next_action_at: instantOf(event.metadata),
    })),
    TargetPublishCheckpointed: change((row, _data, event) => ({ ...row, next_action_at: instantOf(event.metadata) })),
    // The head's id and address are shown as soon as the head is published, also of a thread that is never finished.
    TargetSegmentPublished: change((row, data, event) => ({
      ...row,
      ...(data.segment.index === 0 ? { external_id: data.externalId, permalink: data.permalink } : {}),
      segments: addSegment(row.segments, data),
      unknown_since: null,
      deferred_since: null,
      next_action_at: instantOf(event.metadata),
    })),
    TargetPublishTakenOver: change((row, { takeover }, event) => ({
      ...row,
      takeover,
      next_action_at: instantOf(event.metadata),
    })),
    TargetHandedToPlatform: change(handedOver),
    TargetUndoRequested: change(undoRequested),
    TargetUndoFailed: change(undoFailed),
    TargetNativeTimeChanged: change((row, { dueAt, scheduledLocal, jitterSeconds }) => ({
      ...{ ...row, ...inTime, ...undone(row), due_at: dueAt, next_action_at: dueAt },
      ...{ scheduled_local: scheduledLocal, jitter_seconds: jitterSeconds },
    })),
    TargetNativeRevised: change((row, data) => ({
      ...{ ...row, ...inTime, ...undone(row), ...asRevised(data), due_at: data.dueAt, next_action_at: data.dueAt },
    })),
    TargetScheduleModeChanged: change(modeChanged),
    TargetAcceptedByPlatform: change((row, { askAt, until }) => ({
      ...row,
      status: 'processing',
      failure: null,
      retry_at: null,
      deferred_since: null,
      next_action_at: askAt,
      processing_until: until,
    })),
    TargetPublished: change((row, { externalId, permalink, publishedAt }) => ({
      ...row,
      ...settled,
      status: 'published',
      external_id: externalId,
      permalink,
      published_at: publishedAt,
      failure: null,
    })),
    TargetFailed: change((row, { attempt, failure }) => ({
      ...row,
      ...settled,
      status: 'failed',
      attempts: attempt,
      failure,
    })),
    TargetApprovalLapsed: change((row) => ({ ...row, ...settled, status: 'failed', failure: approvalTooLate })),
    TargetRateLimited: change((row, { retryAt, failure }, event) => ({
      ...row,
      ...deferredBy(row, event),
      status: 'rate_limited',
      retry_at: retryAt,
      next_action_at: retryAt,
      failure,
    })),
    TargetPublishDeferred: change((row, { retryAt, failure }, event) => ({
      ...row,
      ...deferredBy(row, event),
      ...pending(row.due_at, retryAt),
      failure,
    })),
    TargetOutcomeUnknown: change((row, { failure, reconcileAt }, event) => ({
      ...row,
      status: 'outcome_unknown',
      failure,
      retry_at: null,
      deferred_since: null,
      next_action_at: reconcileAt,
      unknown_since: row.unknown_since ?? instantOf(event.metadata),
    })),
    TargetAbsenceObserved: unchanged,
    TargetOutcomeSettled: change((row, data, event) => {
      if (data.outcome === 'absent') {
        const since = data.by === 'admin' ? null : row.unknown_since;
        return { ...row, ...pending(row.due_at, data.retryAt ?? instantOf(event.metadata)), unknown_since: since };
      }
      if (data.outcome === 'failed' && data.failure !== null) {
        return { ...row, ...settled, status: 'failed', failure: data.failure };
      }
      return {
        ...row,
        ...settled,
        status: 'published',
        external_id: data.externalId,
        permalink: data.permalink,
        published_at: data.publishedAt ?? instantOf(event.metadata),
        failure: null,
      };
    }),
    TargetPlaceLapsed: unchanged,
    TargetOverdue: change((row) => ({ ...row, overdue: true })),
    TargetRequeued: change((row, { by, dueAt: retryAt }) => ({
      ...row,
      ...pending(row.due_at, retryAt),
      // An automatic requeue changes nothing that a person was shown.
      ...(by === 'schedule' ? {} : { ...inTime, unknown_since: null }),
    })),
    TargetFirstCommentScheduled: change(commentScheduled),
    TargetFirstCommentStarted: change(commentStarted),
    TargetFirstCommentPosted: change(commentPosted),
    TargetFirstCommentFailed: change(commentFailed),
    TargetAfterStepScheduled: change(stepScheduled),
    TargetAfterStepStarted: change(stepStarted),
    TargetAfterStepCompleted: change(stepCompleted),
    TargetAfterStepFailed: change(stepFailed),
    TargetRemovedOnPlatform: unchanged,
  },
});

export const postTargets = inRealTime(targetsByEvents);

const afterStepEvents: readonly TargetEvent['type'][] = [
  'TargetAfterStepScheduled',
  'TargetAfterStepStarted',
  'TargetAfterStepCompleted',
  'TargetAfterStepFailed',
];

/**
 * Shape 1 shows what a network processes as an attempt that is under way, and knows no cover that follows a post. Its
 * workers can read neither: with a next action they would take the target's lease for nothing.
 */
export const targetsOfShape1 = formerModel<Own>(postTargets, {
  without: ['processing_until', 'follow_ups', 'after_step_issues'],
  unread: afterStepEvents,
  said: (row) => (row.status === 'processing' ? { ...row, status: 'publishing', next_action_at: null } : row),
});

/** The part of a post's body that a target shows. */
export type TargetContent = ContentBody;

/** Columns of a target that an answer is rendered from. */
export const shownOfTarget = [
  'id',
  'revision',
  'created_at',
  'updated_at',
  'post_id',
  'client_id',
  'account_id',
  'platform',
  'status',
  'due_at',
  'scheduled_local',
  'timezone',
  'jitter_seconds',
  'schedule_mode',
  'schedule_mode_reason',
  'attempts',
  'published_at',
  'external_id',
  'permalink',
  'segments',
  'failure',
  'retry_at',
  'unknown_since',
  'processing_until',
  'after_step_issues',
  'first_comment_issue',
  'first_comment_id',
  'undo',
  'cancel_reason',
  'post_revision',
] as const satisfies readonly (keyof TargetRow)[];
export type ShownTarget = Pick<TargetRow, (typeof shownOfTarget)[number]>;

/** An attempt under way is not the next one. */
const retryAtOf = ({ status, retry_at }: ShownTarget): string | null => (status === 'publishing' ? null : retry_at);

export const renderTarget = (row: ShownTarget, body: TargetContent) => {
  const { segments, overrides } = contentFor(body, row.platform);
  const [head] = segments;
  return {
    id: row.id,
    object: 'post_target' as const,
    postId: row.post_id,
    clientId: row.client_id,
    accountId: row.account_id,
    platform: row.platform,
    status: row.status,
    scheduledAt: row.due_at,
    scheduledLocal: row.scheduled_local,
    timezone: row.timezone,
    jitterSeconds: row.jitter_seconds,
    scheduleMode: row.schedule_mode,
    scheduleModeReason: row.schedule_mode_reason,
    attempts: row.attempts,
    publishedAt: row.published_at,
    externalId: row.external_id,
    permalink: row.permalink,
    segments: renderSegments(row.status, row.segments, segments.length),
    failure: row.failure,
    retryAt: retryAtOf(row),
    unknownSince: row.status === 'outcome_unknown' ? row.unknown_since : null,
    processingUntil: row.status === 'processing' ? row.processing_until : null,
    firstComment: firstCommentOf(row.platform, overrides),
    firstCommentExternalId: row.first_comment_id,
    firstCommentIssue: row.first_comment_issue,
    afterStepIssues: row.after_step_issues ?? [],
    undo: row.undo === 'moving' ? 'pending' : row.undo,
    cancelReason: row.cancel_reason,
    // For a thread, the content of its head.
    title: titleFor(row.platform, head.content, overrides),
    content: head.content,
    mediaIds: head.mediaIds,
    overrides,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    revision: row.revision,
  };
};
