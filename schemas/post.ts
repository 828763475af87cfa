import { type Static, Type } from 'typebox';
import { type EventOf, Instant, LocalDateTime, Nullable, Platform, Uuid } from './common.ts';
import { PlannedTarget, ScheduleMode } from './target.ts';

/** A post: its content, the selection of accounts, and the schedule. Content lives in this stream only. */

export const maxContent = 50_000;
/** Characters from the start of the content that a search scans. */
export const searchedCharacters = 5_000;
const Content = Type.String({ maxLength: maxContent });

export const Variant = Type.Object({
  platform: Platform,
  /** `null` = the base content; an empty string is a real empty caption. */
  contentOverride: Nullable(Content),
  mediaIdsOverride: Nullable(Type.Array(Uuid, { maxItems: 20 })),
  /** Kept whole, unknown keys too; adapters read only what they know. */
  overrides: Type.Record(Type.String(), Type.Unknown()),
});
export type Variant = Static<typeof Variant>;

export const TargetSelection = Type.Object({
  mode: Type.Enum(['group', 'selection', 'accounts']),
  clientId: Nullable(Uuid),
  accountIds: Nullable(Type.Array(Uuid, { maxItems: 500 })),
  platforms: Nullable(Type.Array(Platform)),
});
export type TargetSelection = Static<typeof TargetSelection>;

export const Schedule = Type.Object({
  type: Type.Enum(['now', 'at', 'range']),
  scheduledAt: Nullable(Instant),
  scheduledLocal: Nullable(LocalDateTime),
  from: Nullable(Instant),
  to: Nullable(Instant),
  spreadMinutes: Nullable(Type.Integer({ minimum: 0, maximum: 720 })),
});
export type Schedule = Static<typeof Schedule>;

const ThreadSegment = Type.Object({ content: Content, mediaIds: Type.Array(Uuid, { maxItems: 20 }) });

/** The composed content as stored: every default filled, unknown members dropped. */
export const PostBody = Type.Object({
  content: Content,
  mediaIds: Type.Array(Uuid, { maxItems: 20 }),
  targetSelection: TargetSelection,
  variants: Type.Array(Variant, { maxItems: 10 }),
  schedule: Schedule,
  scheduleMode: ScheduleMode,
  timezone: Type.String({ maxLength: 100 }),
  aiDisclosure: Type.Boolean(),
  requestApproval: Type.Boolean(),
  campaignId: Nullable(Uuid),
  thread: Nullable(Type.Object({ segments: Type.Array(ThreadSegment, { minItems: 2, maxItems: 50 }) })),
  mediaAltTexts: Nullable(Type.Record(Type.String(), Type.String({ maxLength: 2000 }))),
  coverMediaId: Nullable(Uuid),
  coverFrameMs: Nullable(Type.Integer({ minimum: 0, maximum: 86_400_000 })),
});
export type PostBody = Static<typeof PostBody>;

export const maxTargets = 500;
const Plan = Type.Object({
  /** 1 for the first plan; publishing a returned draft makes the next. */
  number: Type.Integer({ minimum: 1 }),
  targets: Type.Array(PlannedTarget, { minItems: 1, maxItems: maxTargets }),
});
export type Plan = Static<typeof Plan>;

const Creator = Type.Object({ type: Type.String({ maxLength: 20 }), id: Type.String({ maxLength: 200 }) });

export const postEvents = {
  PostDrafted: Type.Object({ clientId: Uuid, createdBy: Creator, body: PostBody }),
  DraftReplaced: Type.Object({ body: PostBody }),
  /**
   * The whole plan, so that the fan-out needs nothing else. First event of a post, or of the publication of a draft.
   */
  PostScheduled: Type.Object({ clientId: Uuid, createdBy: Creator, body: PostBody, plan: Plan }),
  /** An intent for many targets, decided here and then carried out on each. */
  PostTargetsChanged: Type.Object({
    change: Type.Object({ kind: Type.Literal('cancel'), reason: Type.Enum(['client_archived', 'post_canceled']) }),
    targetIds: Type.Array(Uuid, { minItems: 1, maxItems: maxTargets }),
  }),
  PostTargetsSkipped: Type.Object({
    intentRevision: Type.Integer({ minimum: 0 }),
    targetIds: Type.Array(Uuid, { minItems: 1, maxItems: maxTargets }),
    reason: Type.String({ maxLength: 200 }),
  }),
  PostTargetSettled: Type.Object({
    targetId: Uuid,
    targetRevision: Type.Integer({ minimum: 0 }),
    outcome: Type.Enum(['published', 'failed', 'canceled']),
    publishedAt: Nullable(Instant),
  }),
  PostTargetReopened: Type.Object({ targetId: Uuid, targetRevision: Type.Integer({ minimum: 0 }) }),
  PostPublished: Type.Object({ publishedAt: Instant }),
  PostPartiallyPublished: Type.Object({ publishedAt: Instant }),
  PostFailed: Type.Object({}),
  PostCanceled: Type.Object({ reason: Type.Enum(['targets_canceled', 'client_archived', 'approval_rejected']) }),
} as const;
export type PostEvent = EventOf<typeof postEvents>;

export const postStatuses = [
  'draft',
  'pending_approval',
  'scheduled',
  'publishing',
  'published',
  'partially_published',
  'failed',
  'canceled',
] as const;
export type PostStatus = (typeof postStatuses)[number];

/** Largest stored post, bytes of its serialised event. */
export const maxPostBytes = 400 * 1024;
