import { Type } from 'typebox';
import { Instant, LocalDateTime, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { maxContent, postStatuses, searchedCharacters } from '#schemas/post.ts';
import { type Cleaned, Defaulted, InstantInput, Maybe, PlatformInput, paging, stamps } from './common.ts';
import { PostTarget } from './post-target.ts';

/** POST /posts and its relatives: the caller's input, and the post as answered. */

const Text = (maxLength: number, description?: string) =>
  Type.String(description === undefined ? { maxLength } : { maxLength, description });
const MediaIds = Type.Array(Uuid, { maxItems: 20, description: 'Media asset ids in order.' });

const VariantInput = Type.Object({
  platform: PlatformInput,
  contentOverride: Maybe(
    Text(maxContent, 'Replaces the content for this platform; an empty string is a real empty caption.'),
  ),
  mediaIdsOverride: Maybe(MediaIds),
  overrides: Defaulted(
    Type.Record(Type.String(), Type.Unknown(), { description: 'Settings of the platform; unknown keys are ignored.' }),
    {},
  ),
});

const TargetsInput = Type.Object({
  mode: Type.Enum(['group', 'selection', 'accounts'], {
    description:
      'group: every account of the client; selection: listed ones of the client; accounts: listed ones of any client.',
  }),
  clientId: Maybe(Uuid),
  accountIds: Maybe(Type.Array(Uuid, { minItems: 1, maxItems: 500 })),
  platforms: Maybe(
    Type.Array(PlatformInput, { minItems: 1, maxItems: 11, description: 'Restricts a group to these platforms.' }),
  ),
});

const ScheduleInput = Type.Object({
  type: Type.Enum(['now', 'at', 'range']),
  scheduledAt: Maybe(InstantInput('For type at.')),
  scheduledLocal: Maybe(LocalDateTime),
  from: Maybe(InstantInput('For type range: when the first target is due.')),
  to: Maybe(InstantInput('For type range: when the last target is due.')),
  spreadMinutes: Maybe(Type.Integer({ minimum: 0, maximum: 720 })),
});
export type ScheduleInput = Cleaned<typeof ScheduleInput>;

const SegmentInput = Type.Object({ content: Defaulted(Text(maxContent), ''), mediaIds: Defaulted(MediaIds, []) });

const composed = {
  content: Defaulted(Text(maxContent, 'Base caption.'), ''),
  mediaIds: Defaulted(MediaIds, []),
  targets: TargetsInput,
  variants: Defaulted(Type.Array(VariantInput, { maxItems: 10 }), []),
  schedule: ScheduleInput,
  scheduleMode: Defaulted(Type.Enum(['managed', 'native']), 'managed'),
  timezone: Defaulted(Type.String({ minLength: 1, maxLength: 100 }), 'UTC'),
  aiDisclosure: Defaulted(Type.Boolean(), false),
  requestApproval: Defaulted(Type.Boolean(), false),
  campaignId: Maybe(Uuid),
  thread: Maybe(
    Type.Object(
      { segments: Type.Array(SegmentInput, { minItems: 2, maxItems: 50 }) },
      {
        description:
          'A chain of replies on x and threads, where its segments stand for `content`, `mediaIds` and their variants. Each goes out once the one before it is out; the target is known by the first.',
      },
    ),
  ),
  mediaAltTexts: Maybe(Type.Record(Type.String(), Text(2000))),
  coverMediaId: Maybe(Uuid),
  coverFrameMs: Maybe(Type.Integer({ minimum: 0, maximum: 86_400_000 })),
};

/** PATCH /posts/{id}: a full replacement of a draft. */
export const PostReplace = Type.Object(composed);
export type PostReplace = Cleaned<typeof PostReplace>;

export const PostCreate = Type.Object({
  clientId: Uuid,
  ...composed,
  saveDraft: Defaulted(Type.Boolean(), false),
});
export type PostCreate = Cleaned<typeof PostCreate>;

export const PostPublish = Type.Object({ schedule: Maybe(ScheduleInput) });

export const PostQuery = Type.Object({
  ...paging,
  status: Maybe(Type.Array(Type.Enum([...postStatuses]), { minItems: 1 })),
  clientId: Maybe(Uuid),
  platform: Maybe(
    Type.Array(PlatformInput, { minItems: 1, description: 'Posts with a target on one of these platforms.' }),
  ),
  campaignId: Maybe(Uuid),
  from: Maybe(InstantInput('Scheduled (a draft: created) at or after.')),
  to: Maybe(InstantInput('Scheduled (a draft: created) before.')),
  search: Maybe(
    Type.String({
      maxLength: 200,
      description: `Part of the content, ignoring case. Only the first ${searchedCharacters.toLocaleString('en')} characters are searched.`,
    }),
  ),
});

const Counts = Type.Object(
  { total: Type.Integer({ minimum: 0 }) },
  { additionalProperties: Type.Integer({ minimum: 0 }), description: 'Number of targets by status; absent = 0.' },
);

const shared = {
  id: Uuid,
  object: Type.Literal('post'),
  ...stamps,
  clientId: Uuid,
  status: Type.Enum([...postStatuses]),
  content: Type.String(),
  mediaIds: Type.Array(Uuid),
  targetSelection: Type.Object({
    mode: Type.Enum(['group', 'selection', 'accounts']),
    clientId: Nullable(Uuid),
    accountIds: Nullable(Type.Array(Uuid)),
    platforms: Nullable(Type.Array(Platform)),
  }),
  schedule: Type.Object({
    type: Type.Enum(['now', 'at', 'range']),
    scheduledAt: Nullable(Instant),
    scheduledLocal: Nullable(LocalDateTime),
    from: Nullable(Instant),
    to: Nullable(Instant),
    spreadMinutes: Nullable(Type.Integer()),
  }),
  scheduleMode: Type.Enum(['managed', 'native']),
  timezone: Type.String(),
  aiDisclosure: Type.Boolean(),
  requestApproval: Type.Boolean(),
  campaignId: Nullable(Uuid),
  thread: Nullable(
    Type.Object({ segments: Type.Array(Type.Object({ content: Type.String(), mediaIds: Type.Array(Uuid) })) }),
  ),
  mediaAltTexts: Nullable(Type.Record(Type.String(), Type.String())),
  coverMediaId: Nullable(Uuid),
  coverFrameMs: Nullable(Type.Integer()),
  scheduledAt: Nullable(Type.String({ format: 'date-time', description: 'The earliest due instant of its targets.' })),
  publishedAt: Nullable(
    Type.String({ format: 'date-time', description: 'The instant at which its first target was published.' }),
  ),
  createdBy: Type.Object({ type: Type.String(), id: Type.String() }),
  approvalId: Nullable(Uuid),
  recycledFrom: Nullable(Uuid),
  counts: Counts,
};

/** A row of GET /posts. */
export const PostRow = Type.Object(shared);

export const Post = Type.Object({
  ...shared,
  variants: Type.Array(
    Type.Object({
      platform: Platform,
      contentOverride: Nullable(Type.String()),
      mediaIdsOverride: Nullable(Type.Array(Uuid)),
      overrides: Type.Record(Type.String(), Type.Unknown()),
    }),
  ),
  /** Empty for a draft: its selection is resolved when it is published. */
  targets: Type.Array(PostTarget),
});
