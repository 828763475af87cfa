import { type Static, Type } from 'typebox';
import { ContentHash, maxComment } from './approval.ts';
import { Actor, type EventOf, Instant, LocalDateTime, Nullable, Platform, Uuid } from './common.ts';
import { ExternalRef } from './externalref.ts';
import { Named, OpenEnum, said } from './published.ts';
import { PlannedTarget, ScheduleMode, TargetTime } from './target.ts';

/** A post: its content, the selection of accounts, and the schedule. Content lives in this stream only. */

export const maxContent = 50_000;
/** Characters from the start of the content that a search scans. */
export const searchedCharacters = 5_000;
export const excerptLength = 280;
export const Excerpt = Type.String({
  maxLength: excerptLength,
  description: `The first ${excerptLength} characters of the content; where a thread has no content, of its first segment with a text.`,
});
const Content = Type.String({ maxLength: maxContent });

export const Variant = Named(
  'Variant',
  Type.Object(
    {
      platform: said(Platform, 'The network.'),
      contentOverride: said(
        Nullable(Content),
        'The text for this network; null: that of the post. An empty string is a real empty caption.',
      ),
      mediaIdsOverride: said(
        Nullable(Type.Array(Uuid, { maxItems: 20 })),
        'The media for this network, in order; null: those of the post.',
      ),
      // Kept whole, unknown keys too; adapters read only what they know.
      overrides: Type.Record(Type.String(), Type.Unknown(), {
        description: 'Settings of the network by key, as they were sent.',
      }),
    },
    { description: 'What differs from the post on one network.' },
  ),
);
export type Variant = Static<typeof Variant>;

export const selectionModes = ['group', 'selection', 'accounts'] as const;
export const selectionWords =
  'group: every connected account of the client; selection: listed accounts of the client; accounts: listed accounts of any client.';
const SelectionMode = OpenEnum('SelectionMode', selectionModes, selectionWords);

export const TargetSelection = Named(
  'TargetSelection',
  Type.Object(
    {
      mode: said(SelectionMode, 'How the accounts were selected.'),
      clientId: said(Nullable(Uuid), 'The client of a group; null where none was sent.'),
      accountIds: said(
        Nullable(Type.Array(Uuid, { maxItems: 500 })),
        'The listed accounts; null where none were sent.',
      ),
      platforms: said(Nullable(Type.Array(Platform)), 'The networks to which a group is narrowed; null: all of them.'),
    },
    { description: 'The selection of accounts as it was sent.' },
  ),
);
export type TargetSelection = Static<typeof TargetSelection>;

export const scheduleTypes = ['now', 'at', 'range'] as const;
export const scheduleTypeWords =
  'now: at once; at: at one time; range: spread evenly between two times, one target after the other.';
const ScheduleType = OpenEnum('ScheduleType', scheduleTypes, scheduleTypeWords);

export const Schedule = Named(
  'Schedule',
  Type.Object(
    {
      type: said(ScheduleType, 'Which of the members below count.'),
      scheduledAt: said(Nullable(Instant), 'For type at: the due instant; null where none was sent.'),
      scheduledLocal: said(
        Nullable(LocalDateTime),
        'For type at: the due wall-clock time in each target’s own zone; null where none was sent.',
      ),
      from: said(Nullable(Instant), 'For type range: when the first target is due; null where none was sent.'),
      to: said(Nullable(Instant), 'For type range: when the last target is due; null where none was sent.'),
      spreadMinutes: said(
        Nullable(Type.Integer({ minimum: 0, maximum: 720 })),
        'Minutes within which each target is delayed, never earlier than its time; null: no delay.',
      ),
    },
    { description: 'When a post goes out, as it was sent.' },
  ),
);
export type Schedule = Static<typeof Schedule>;

const ThreadSegment = Named(
  'ThreadSegment',
  Type.Object(
    {
      content: Type.String({ maxLength: maxContent, description: 'The text of this segment.' }),
      mediaIds: Type.Array(Uuid, { maxItems: 20, description: 'The media of this segment, in order.' }),
    },
    { description: 'One post of a thread.' },
  ),
);
export const Thread = Named(
  'PostThread',
  Type.Object(
    {
      segments: Type.Array(ThreadSegment, {
        minItems: 2,
        maxItems: 50,
        description: 'The first is the head; each later one replies to the one before it.',
      }),
    },
    { description: 'A chain of replies on x and threads.' },
  ),
);

export const MediaAltTexts = Named(
  'MediaAltTexts',
  Type.Record(Type.String(), Type.String({ maxLength: 2000 }), {
    description: 'Text for people who do not see a picture, by id of its asset: at most 2,000 characters each.',
  }),
);

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
  thread: Nullable(Thread),
  mediaAltTexts: Nullable(MediaAltTexts),
  coverMediaId: Nullable(Uuid),
  coverFrameMs: Nullable(Type.Integer({ minimum: 0, maximum: 86_400_000 })),
  /** Unique in the client; absent: none. */
  externalRef: Type.Optional(ExternalRef),
});
export type PostBody = Static<typeof PostBody>;

export const maxTargets = 500;
const Plan = Type.Object({
  /** 1 for the first plan; publishing a returned draft makes the next. */
  number: Type.Integer({ minimum: 1 }),
  targets: Type.Array(PlannedTarget, { minItems: 1, maxItems: maxTargets }),
});
export type Plan = Static<typeof Plan>;

/** Why the service stops the recycling of a post. */
export const recycleStops = ['times', 'until', 'client_archived', 'account_disconnected', 'failures'] as const;

/** Days after the publication of the post, by which its copies are due. */
const RecycleDay = Type.Integer({ minimum: 1 });

const Creator = Type.Object({ type: Type.String({ maxLength: 20 }), id: Type.String({ maxLength: 200 }) });

/** The decision that the event follows, for webhooks; the stream of the request is its record. */
const followed = {
  decidedBy: Actor,
  comment: Nullable(Type.String({ maxLength: maxComment })),
};

export const postEvents = {
  PostDrafted: Type.Object({ clientId: Uuid, createdBy: Creator, body: PostBody }),
  DraftReplaced: Type.Object({ body: PostBody }),
  PostDiscarded: Type.Object({}),
  /**
   * The whole plan, so that the fan-out needs nothing else. First event of a post, or of the publication of a draft.
   */
  PostScheduled: Type.Object({
    clientId: Uuid,
    createdBy: Creator,
    body: PostBody,
    plan: Plan,
    /** The targets begin held: PostSubmittedForApproval follows in the same append. Absent: no approval is required. */
    held: Type.Optional(Type.Literal(true)),
    /** The post is a copy that the service made of a recycled post. Absent: it is none. */
    recycledFrom: Type.Optional(
      Type.Object({ postId: Uuid, occurrence: Type.Integer({ minimum: 1 }), day: Type.Integer({ minimum: 1 }) }),
    ),
  }),
  /**
   * These targets are held until the request is approved. In the append of the plan or of the revise that it follows.
   */
  PostSubmittedForApproval: Type.Object({
    approvalId: Uuid,
    /** 1 for the first request of the post. */
    request: Type.Integer({ minimum: 1 }),
    hash: ContentHash,
    submittedBy: Actor,
    targetIds: Type.Array(Uuid, { minItems: 1, maxItems: maxTargets }),
  }),
  /** An intent: the held targets go out at their times, with exactly the content of this hash. */
  PostReleased: Type.Object({ approvalId: Uuid, hash: ContentHash, ...followed }),
  /** An intent as well: every target of the plan is canceled, and the post is a draft again. */
  PostReturnedToDraft: Type.Object({ approvalId: Uuid, ...followed }),
  /** An intent for many targets, decided here and then carried out on each. */
  PostTargetsChanged: Type.Object({
    change: Type.Object({
      kind: Type.Literal('cancel'),
      reason: Type.Enum([
        'client_archived',
        'account_disconnected',
        'post_canceled',
        'approval_rejected',
        /** A newer copy of the recycled post takes the place of this one. */
        'copy_replaced',
      ]),
    }),
    targetIds: Type.Array(Uuid, { minItems: 1, maxItems: maxTargets }),
  }),
  /** An intent as well: the post as it goes out on these targets, decided here and then carried out on each. */
  PostRevised: Type.Object({
    body: PostBody,
    /** Names of the members of the body that changed. */
    changed: Type.Array(Type.String({ maxLength: 50 }), { maxItems: 50 }),
    targetIds: Type.Array(Uuid, { minItems: 1, maxItems: maxTargets }),
    /** One for each of `targetIds`, in their order; null: each target keeps its own time. */
    times: Nullable(Type.Array(TargetTime, { minItems: 1, maxItems: maxTargets })),
    /**
     * PostSubmittedForApproval follows in the same append: the body is asked for, and not released. Absent: none follows.
     */
    held: Type.Optional(Type.Literal(true)),
  }),
  /** An intent came too late for these targets and is never applied to them. */
  PostTargetsSkipped: Type.Object({
    intentRevision: Type.Integer({ minimum: 0 }),
    targetIds: Type.Array(Uuid, { minItems: 1, maxItems: maxTargets }),
    /** A code: the status of the targets, or `segment_published`. */
    reason: Type.String({ maxLength: 200 }),
  }),
  PostTargetSettled: Type.Object({
    targetId: Uuid,
    targetRevision: Type.Integer({ minimum: 0 }),
    outcome: Type.Enum(['published', 'failed', 'canceled']),
    publishedAt: Nullable(Instant),
  }),
  /** The post belongs to another campaign, or to none, from here on. */
  PostCampaignChanged: Type.Object({ campaignId: Nullable(Uuid), previousCampaignId: Nullable(Uuid) }),
  /** How the post is repeated from here on. PostRecyclePlanned follows in the same append where the post is out. */
  PostRecycleSet: Type.Object({
    /** False: the settings are kept, and no copy is made. */
    enabled: Type.Boolean(),
    everyDays: Type.Integer({ minimum: 1, maximum: 365 }),
    /** Copies of the post at most; null: no limit. */
    times: Nullable(Type.Integer({ minimum: 1, maximum: 100 })),
    /** No copy is due after it; null: no end. */
    until: Nullable(Instant),
    /** The copies are theirs. */
    setBy: Actor,
    /** Every copy waits for an approval, whatever its clients require: the role of `setBy` requires it. */
    needsApproval: Type.Boolean(),
  }),
  /** When the next copy is due. */
  PostRecyclePlanned: Type.Object({ day: RecycleDay, dueAt: Instant }),
  /** A copy of the post was stored. */
  PostRecycled: Type.Object({
    /** 1 for the first copy. */
    occurrence: Type.Integer({ minimum: 1 }),
    newPostId: Uuid,
    day: RecycleDay,
    /** When the first target of the copy is due. */
    scheduledAt: Instant,
  }),
  /** A copy was due, and a check of the post refused it. */
  PostRecycleFailed: Type.Object({
    day: RecycleDay,
    /** Of the refusal. */
    code: Type.String({ maxLength: 100 }),
    message: Type.String({ maxLength: 1000 }),
  }),
  /** No more copies are made: a caller asked for it, or the service ended it for this reason. */
  PostRecycleCleared: Type.Object({ reason: Type.Enum(['requested', ...recycleStops]) }),
  PostTargetReopened: Type.Object({ targetId: Uuid, targetRevision: Type.Integer({ minimum: 0 }) }),
  /**
   * Another post took over a reference that this one had claimed and does not have; the pending write fails at this
   * revision. First event of a stream: the post is never created under this id.
   */
  PostExternalRefClaimLapsed: Type.Object({ externalRef: ExternalRef }),
  /**
   * The places that a quota held for the next append of this stream were given back; a pending write fails at this
   * revision. First event of a stream: the post is never created under this id.
   */
  PostAbandoned: Type.Object({}),
  PostPublished: Type.Object({ publishedAt: Instant }),
  PostPartiallyPublished: Type.Object({ publishedAt: Instant }),
  PostFailed: Type.Object({}),
  PostCanceled: Type.Object({
    reason: Type.Enum([
      'targets_canceled',
      'client_archived',
      'approval_rejected',
      'account_disconnected',
      'copy_replaced',
    ]),
  }),
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
  'discarded',
] as const;
export type PostStatus = (typeof postStatuses)[number];

/** Largest stored post, bytes of its serialised event. */
export const maxPostBytes = 400 * 1024;
