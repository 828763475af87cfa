import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type {
  Failure,
  PlannedTarget,
  SegmentStatus,
  TargetEvent,
  TargetStatus,
  undoStatuses,
} from '#schemas/target.ts';

/** Parts of a target's row that many of its events set, and the folds of its network's own scheduler. */

export type UndoStatus = (typeof undoStatuses)[number];

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
export const atOnce = (mode: PlannedTarget['scheduleMode'], { metadata }: DecodedEvent): Partial<NativeRow> =>
  mode === 'native' ? { next_action_at: metadata.occurredAt } : {};

export const settled = { retry_at: null, next_action_at: null } as const;

export const pending = (dueAt: string, retryAt: string | null = null) =>
  ({
    status: 'pending',
    due_at: dueAt,
    retry_at: retryAt,
    next_action_at: retryAt ?? dueAt,
    failure: null,
  }) as const;

/** Nothing keeps the target beyond its time, as far as the service knows. */
export const inTime = { overdue: false, deferred_since: null } as const;

/** As the target's state counts it. */
export const deferredBy = (
  { deferred_since: since, due_at: due }: Pick<NativeRow, 'deferred_since' | 'due_at'>,
  { metadata }: DecodedEvent,
) => ({ deferred_since: since ?? (metadata.occurredAt < due ? due : metadata.occurredAt) });

/** A held target has work only where it fails if nobody has approved it in time. */
export const held = (row: Pick<NativeRow, 'approval_late'>, dueAt: string) =>
  ({ due_at: dueAt, retry_at: null, next_action_at: row.approval_late === 'fail' ? dueAt : null }) as const;

/** A held target stays held through a reschedule or a revision; any other open one becomes pending again. */
export const due = (
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
export const undone = ({ undo }: Pick<NativeRow, 'undo'>): Partial<NativeRow> =>
  undo === 'pending' ? { undo: 'done' } : {};

/** One that was canceled while it was handed over is taken back at once. */
export const handedOver = <R extends NativeRow>(
  row: R,
  { dueAt }: DataOf<'TargetHandedToPlatform'>,
  event: DecodedEvent,
): R => ({
  ...row,
  status: 'handed_to_platform',
  failure: null,
  retry_at: null,
  deferred_since: null,
  next_action_at: row.undo === 'pending' ? event.metadata.occurredAt : dueAt,
});

export const undoRequested = <R extends NativeRow>(
  row: R,
  { postRevision }: DataOf<'TargetUndoRequested'>,
  event: DecodedEvent,
): R => ({
  ...row,
  undo: 'pending',
  next_action_at: event.metadata.occurredAt,
  applied_revision: Math.max(row.applied_revision, postRevision ?? 0),
});

export const undoFailed = <R extends NativeRow>(row: R): R => ({ ...row, undo: 'failed', next_action_at: row.due_at });

export const modeChanged = <R extends NativeRow>(
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
