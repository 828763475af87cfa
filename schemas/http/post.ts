import { type TInteger, type TOptional, Type } from 'typebox';
import { ActorRef, Nullable, Uuid } from '#schemas/common.ts';
import { ExternalRef } from '#schemas/externalref.ts';
import {
  MediaAltTexts,
  maxContent,
  maxTargets,
  postStatuses,
  Schedule,
  searchedCharacters,
  TargetSelection,
  Thread,
  Variant,
} from '#schemas/post.ts';
import { byUuid, ClosedEnum, grouped, Named, OpenEnum, said, unreadIn } from '#schemas/published.ts';
import { ScheduleMode, scheduleModes, targetStatuses } from '#schemas/target.ts';
import { PostDecision } from './approval.ts';
import {
  asOfQuery,
  type Cleaned,
  Defaulted,
  InstantInput,
  Maybe,
  PlatformInput,
  paging,
  QueryText,
  stamps,
  UuidInput,
} from './common.ts';
import { MediaIds, ScheduleInput, TargetSelectionInput, Text, ThreadInput, VariantInput } from './post-input.ts';
import { PostTarget } from './post-target.ts';

/** POST /posts and its relatives: the caller's input, and the post as answered. */

const composed = {
  content: Defaulted(Text(maxContent, 'The text, for every network without a text of its own.'), ''),
  mediaIds: Defaulted(MediaIds('Ids of media assets, in order.'), []),
  targets: said(TargetSelectionInput, 'The accounts that the post goes to.'),
  variants: Defaulted(
    Type.Array(VariantInput, { maxItems: 10, description: 'What differs on single networks: one entry for each.' }),
    [],
  ),
  schedule: said(ScheduleInput, 'When the post goes out. A draft keeps it until it is published.'),
  scheduleMode: Defaulted(
    said(
      ClosedEnum('ScheduleModeInput', scheduleModes, 'Who publishes at the due instant.'),
      'native hands facebook and youtube targets to the network’s own scheduler at once, where the network takes a post of that time (facebook: 10 minutes to 29 days ahead; youtube: 15 minutes to 548 days) and of those settings. All others stay managed, and say why in `scheduleModeReason`.',
    ),
    'managed',
  ),
  timezone: Defaulted(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description: 'IANA zone for `schedule.scheduledLocal`, of targets whose account and client have none.',
      examples: ['Europe/Berlin'],
    }),
    'UTC',
  ),
  aiDisclosure: Defaulted(
    Type.Boolean({
      description:
        'Whether the content was made with AI: copied onto every variant without an `aiGenerated` of its own.',
    }),
    false,
  ),
  requestApproval: Defaulted(
    Type.Boolean({ description: 'Submits the post for approval where the client or the role requires it.' }),
    false,
  ),
  campaignId: Maybe(
    said(UuidInput, 'The campaign that the post belongs to. A campaign with a client takes only posts of that client.'),
  ),
  externalRef: Maybe(
    said(
      ExternalRef,
      'Your own reference of the post, for example its id in your system: exact, and unique among the posts of the client. A reference that another post has is refused with `already_exists`, and `postId` names that post.',
      { examples: ['CMS-1042'] },
    ),
  ),
  thread: Maybe(said(ThreadInput, 'A chain of replies on x and threads; other networks ignore it. Absent: no thread.')),
  mediaAltTexts: Maybe(
    said(
      byUuid(MediaAltTexts),
      'Text for people who do not see a picture, by id of its asset, of the length that its networks take (x, instagram and threads 1,000 characters, pinterest 500); one that shows nothing: none. Absent: the text of the asset, cut to that length. Ids not in the post are ignored.',
    ),
  ),
  coverMediaId: Maybe(
    said(
      UuidInput,
      'An image asset as the cover of a video on youtube, instagram, facebook and telegram. Absent: a frame of the video.',
    ),
  ),
  coverFrameMs: Maybe(
    Type.Integer({
      minimum: 0,
      maximum: 86_400_000,
      description:
        'Milliseconds into the video at which tiktok, and instagram for a reel without a cover of its own, take the cover.',
    }),
  ),
};

/** PATCH /posts/{id}: a full replacement of a draft. */
export const PostReplace = Named(
  'PostReplace',
  unreadIn(
    Type.Object(composed, {
      description: 'A whole draft: an optional member that is absent returns to its default.',
    }),
    {
      clientId: 'a post stays with its client',
      saveDraft: 'a draft stays a draft until POST /posts/{id}/publish',
    },
  ),
);
export type PostReplace = Cleaned<typeof PostReplace>;

export const PostCreate = Named(
  'PostCreate',
  Type.Object(
    {
      clientId: said(UuidInput, 'The client that the post belongs to.'),
      ...composed,
      saveDraft: Defaulted(
        Type.Boolean({
          description:
            'Keeps the post as a draft: nothing is scheduled, and the rules of the networks are not checked.',
        }),
        false,
      ),
    },
    { description: 'A post as it is composed.' },
  ),
);
export type PostCreate = Cleaned<typeof PostCreate>;

/** The members of a composed post that are no members of another body, with one reason. */
export const unreadOfPost = (members: Readonly<Record<string, unknown>>, reason: string): Record<string, string> =>
  Object.fromEntries(
    Object.keys(PostCreate.properties)
      .filter((name) => !Object.hasOwn(members, name))
      .map((name) => [name, reason]),
  );

const published = {
  schedule: Maybe(said(ScheduleInput, 'Replaces the schedule of the draft. Absent: that of the draft.')),
  acknowledgeDecision: Maybe(
    Type.Boolean({
      description:
        'false: where an approver asked for changes and the content is still the same, the call is refused with `changes_requested`. true or absent: it is published, with a warning.',
    }),
  ),
};
export const PostPublish = Named(
  'PostPublish',
  unreadIn(
    Type.Object(published, { description: 'How a draft is published.' }),
    unreadOfPost(published, 'the draft goes out as it is: PATCH /posts/{id} changes it'),
  ),
);

const statusWords =
  'draft: not scheduled; pending_approval: held until it is approved; scheduled: waits; publishing: some targets are under way; published, partially_published, failed, canceled: every target is settled';
const PostStatus = OpenEnum(
  'PostStatus',
  postStatuses,
  `${statusWords}; discarded: a draft that was deleted, which only the answer to its deletion shows.`,
);
const PostStatusInput = ClosedEnum(
  'PostStatusInput',
  postStatuses.filter((status) => status !== 'discarded'),
  `${statusWords}.`,
);

export const PostQuery = Type.Object({
  ...paging,
  ...asOfQuery,
  status: Maybe(Type.Array(PostStatusInput, { minItems: 1, description: 'One status, or several with commas.' })),
  clientId: Maybe(said(UuidInput, 'Only posts of this client.')),
  platform: Maybe(
    Type.Array(PlatformInput, {
      minItems: 1,
      description: 'Only posts with a target on this network, or on one of several with commas.',
    }),
  ),
  campaignId: Maybe(said(UuidInput, 'Only posts of this campaign.')),
  externalRef: Maybe(said(ExternalRef, 'Only posts with this reference of yours: at most one for each client.')),
  from: Maybe(InstantInput('Scheduled (a draft: created) at or after.')),
  to: Maybe(InstantInput('Scheduled (a draft: created) before.')),
  search: Maybe(
    QueryText(
      `Part of the content, ignoring case. Only the first ${grouped(searchedCharacters)} characters are searched.`,
    ),
  ),
});

const Count = (description: string) => Type.Integer({ minimum: 0, maximum: maxTargets, description });
/** Absent = 0; statuses may be added. */
const Counts = Named(
  'PostCounts',
  Type.Object(
    {
      total: Count('All targets of the post.'),
      ...(Object.fromEntries(
        targetStatuses.map((status) => [status, Type.Optional(Count(`Targets that are ${status}; absent: none.`))]),
      ) as Record<(typeof targetStatuses)[number], TOptional<TInteger>>),
    },
    { description: 'Number of targets by status; a status without targets is absent.' },
  ),
);

const content = {
  content: Type.String({ description: 'The text, for every network without a text of its own.' }),
  mediaIds: Type.Array(Uuid, { description: 'Ids of its media assets, in order.' }),
};
const schedule = said(Schedule, 'When it goes out, as it was sent.');
const timezone = Type.String({
  description: 'IANA zone for `schedule.scheduledLocal`, of targets whose account and client have none.',
});
const aiDisclosure = Type.Boolean({ description: 'Whether the content was made with AI.' });
const attached = {
  thread: said(Nullable(Thread), 'Its segments on x and threads; null: no thread.'),
  mediaAltTexts: said(
    Nullable(MediaAltTexts),
    'Text for people who do not see a picture, by id of its asset; null: none was sent.',
  ),
  coverMediaId: said(Nullable(Uuid), 'The image that is the cover of its video; null: a frame of the video.'),
  coverFrameMs: said(
    Nullable(Type.Integer()),
    'Milliseconds into the video at which tiktok and instagram take the cover; null: none was sent.',
  ),
};
const variants = Type.Array(Variant, { description: 'What differs on single networks.' });

const shared = {
  id: said(Uuid, 'Id of the post.'),
  object: Type.Literal('post', { description: 'The kind of resource.' }),
  ...stamps,
  clientId: said(Uuid, 'The client that it belongs to.'),
  status: said(PostStatus, 'Where it stands: a summary of its targets.'),
  ...content,
  targetSelection: said(TargetSelection, 'The selection of accounts, as it was sent in `targets`.'),
  schedule,
  scheduleMode: said(ScheduleMode, 'The mode that was asked for; each target says which one it has.'),
  timezone,
  aiDisclosure,
  requestApproval: Type.Boolean({ description: 'Whether approval was asked for.' }),
  campaignId: said(Nullable(Uuid), 'The campaign that it belongs to; null: none, or one that was deleted.'),
  externalRef: said(Nullable(ExternalRef), 'Your own reference of the post; null: none.', { examples: ['CMS-1042'] }),
  ...attached,
  scheduledAt: Nullable(
    Type.String({ format: 'date-time', description: 'When the first of its targets is due; null for a draft.' }),
  ),
  publishedAt: Nullable(
    Type.String({ format: 'date-time', description: 'When its first target was published; null before.' }),
  ),
  createdBy: said(ActorRef, 'Who created it.'),
  approvalId: said(Nullable(Uuid), 'Its request for approval; null: none.'),
  lastDecision: said(
    Nullable(PostDecision),
    'What an approver decided last about the post, also about a former content of it; null: nobody has decided.',
  ),
  recycledFrom: said(Nullable(Uuid), 'The post that it repeats; null: none.'),
  counts: said(Counts, 'How many targets it has, by status.'),
};

/** A row of GET /posts. */
export const PostSummary = Named(
  'PostSummary',
  Type.Object(shared, { description: 'A post as a row of a list: without its variants and its targets.' }),
);

const PendingRevision = Named(
  'PendingRevision',
  Type.Object(
    {
      approvalId: said(Uuid, 'The request for approval that it was submitted with.'),
      targetIds: Type.Array(Uuid, { description: 'Ids of the targets that it is for.' }),
      ...content,
      variants,
      ...attached,
      aiDisclosure,
      schedule,
      timezone,
    },
    {
      description:
        'The content that a revise asks for and that no person has approved. It goes out nowhere before that; the next revise starts from it.',
    },
  ),
);

export const Post = Named(
  'Post',
  Type.Object(
    {
      ...shared,
      variants,
      pendingRevision: said(
        Nullable(PendingRevision),
        'What a revise asks for while it waits for an approval, also after changes were requested; null: nothing. The other members show the released content: what went out, was approved, or needed no approval. While nothing of the post was released, they show its only content, and this is null.',
      ),
      targets: Type.Array(PostTarget, {
        description:
          'Its destinations, one for each account. Empty for a draft: its selection is resolved when it is published.',
      }),
    },
    { description: 'A post with its variants and its targets.' },
  ),
);
