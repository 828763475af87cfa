import { Type } from 'typebox';
import { approvalStatuses, ContentHash, maxComment, shownKinds } from '#schemas/approval.ts';
import { ActorRef, Instant, LocalDateTime, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { MediaAltTexts, Schedule, Thread, Variant } from '#schemas/post.ts';
import { ClosedEnum, Named, OpenEnum, said } from '#schemas/published.ts';
import { ScheduleMode } from '#schemas/target.ts';
import { asOfQuery, Maybe, paging, stamps, UuidInput } from './common.ts';
import { WithdrawReason } from './webhook-events/approval.ts';

/** A request for approval, as callers see it, and what they decide. */

const statusWords =
  'pending: waits for a decision; approved: the post goes out as it was shown; rejected: its held targets are canceled; changes_requested: the post is a draft again, or, where a target is out already, its changed targets stay held until a revise; withdrawn: the post was changed or canceled before or after the decision, so that the request is about nothing that goes out';

export const ApprovalQuery = Type.Object({
  ...paging,
  ...asOfQuery,
  status: Maybe(
    Type.Array(ClosedEnum('ApprovalStatusInput', approvalStatuses, `${statusWords}.`), {
      minItems: 1,
      description: 'One status, or several with commas.',
    }),
  ),
  clientId: Maybe(said(UuidInput, 'Only requests about posts of this client.')),
  postId: Maybe(said(UuidInput, 'Only requests about this post.')),
});

const Comment = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: maxComment,
    pattern: '\\S',
    expects: 'a comment with a character that is not blank, such as Off brand.',
    description,
  });

const SeenHash = Type.String({
  pattern: '^[0-9a-f]{64}$',
  expects:
    'the `contentHash` of a request, 64 hexadecimal digits, such as 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  description:
    'The `contentHash` of what the approver has seen. Where the request is about another content, the decision is refused. Absent: it is not compared.',
});

export const ApprovalApprove = Named(
  'ApprovalApprove',
  Type.Object(
    { comment: Maybe(Comment('A word to the author.')), contentHash: Maybe(SeenHash) },
    { description: 'An approval, with a comment or without.' },
  ),
);

export const ApprovalRefuse = Named(
  'ApprovalRefuse',
  Type.Object(
    { comment: Comment('What is wrong, for the author.'), contentHash: Maybe(SeenHash) },
    { description: 'Why a post does not go out like this.' },
  ),
);

const ApprovalTarget = Named(
  'ApprovalTarget',
  Type.Object(
    {
      targetId: said(Uuid, 'Id of the target.'),
      accountId: said(Uuid, 'The account that it goes to.'),
      clientId: said(Uuid, 'The client of the account.'),
      platform: said(Platform, 'The network of the account.'),
      scheduledAt: said(
        Instant,
        'When it was due as the approval was asked for, jitter included. A reschedule keeps the approval: the target says when it is due now.',
      ),
      scheduledLocal: said(
        Nullable(LocalDateTime),
        'The same as wall-clock time; null: it was scheduled as an instant.',
      ),
      timezone: Type.String({ description: 'IANA zone of `scheduledLocal`.' }),
    },
    { description: 'A target that is held until the request is approved.' },
  ),
);

/** What the hash covers, and the times beside it. */
const ApprovalPost = Named(
  'ApprovalPost',
  Type.Object(
    {
      content: Type.String({ description: 'The text, for every network without a text of its own.' }),
      mediaIds: Type.Array(Uuid, { description: 'Ids of its media assets, in order.' }),
      variants: Type.Array(Variant, { description: 'What differs on single networks.' }),
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
      aiDisclosure: Type.Boolean({ description: 'Whether the content was made with AI.' }),
      schedule: said(Schedule, 'When it goes out, as it was sent.'),
      scheduleMode: said(ScheduleMode, 'The mode that was asked for.'),
      targets: Type.Array(ApprovalTarget, { description: 'The targets that are held until this request is approved.' }),
    },
    { description: 'The post as it was when its approval was asked for: exactly this goes out, or nothing.' },
  ),
);

const itemWords =
  'account: an account that it goes to; text, title: what is read; file: a file, in its place; alt_text: what people get who do not see the picture; cover, cover_frame: the picture or the frame that stands for the video; first_comment: what follows the post; setting: any other setting of a network; ai_label: whether it is marked as made with AI; bytes: type, size and SHA-256 of a file';

const ShownItem = Named(
  'ApprovalItem',
  Type.Object(
    {
      kind: said(OpenEnum('ApprovalItemKind', shownKinds, `${itemWords}.`), 'What it is.'),
      platforms: Type.Array(Platform, {
        description:
          'The networks that it is for: what several get alike is one item. Empty: it was sent for all, and none gets it.',
      }),
      part: said(Nullable(Type.Integer()), 'The segment of a thread, from 1; null: it is of no segment.'),
      position: said(Nullable(Type.Integer()), 'Of a file: its place, from 1.'),
      key: said(Nullable(Type.String()), 'Of what was set for one network: the key; null: it was set for all.'),
      value: Type.String({
        description:
          'The text, the name of the file or account, or the value: as it was sent, or as JSON where it is no text.',
      }),
      id: said(Nullable(Uuid), 'Of the media asset or account; null: it is of none.'),
      unsent: Nullable(Type.String({ description: 'Why it does not go out on these networks; null: it goes out.' })),
    },
    { description: 'One thing that the decision covers.' },
  ),
);

const shared = {
  id: said(Uuid, 'Id of the request.'),
  object: Type.Literal('approval', { description: 'The kind of resource.' }),
  ...stamps,
  postId: said(Uuid, 'The post that it is about.'),
  clientId: said(Uuid, 'The client of the post.'),
  status: said(OpenEnum('ApprovalStatus', approvalStatuses, `${statusWords}.`), 'Where it stands.'),
  requestedBy: said(ActorRef, 'Who submitted the post.'),
  decidedBy: said(Nullable(ActorRef), 'Who decided; null before.'),
  decidedAt: said(Nullable(Instant), 'When it was decided; null before.'),
  comment: said(Nullable(Type.String()), 'What the approver wrote; null: nothing.'),
  withdrawnReason: said(Nullable(WithdrawReason), 'Why it was withdrawn; null: it was not.'),
  contentHash: said(
    ContentHash,
    'SHA-256, in hex, of what was asked for: texts, files, disclosure and accounts, never times.',
  ),
  scheduledAt: said(Instant, 'When the first of its targets was due as the approval was asked for.'),
};

/** A row of GET /approvals. */
export const ApprovalSummary = Named(
  'ApprovalSummary',
  Type.Object(shared, { description: 'A request for approval as a row of a list: without the post that it is about.' }),
);

export const Approval = Named(
  'Approval',
  Type.Object(
    {
      ...shared,
      guestName: Nullable(
        Type.String({
          description: 'Who the guest says that they are that decided; null: a member did, or nobody yet.',
        }),
      ),
      post: said(ApprovalPost, 'What the decision is about.'),
      shown: Type.Array(ShownItem, {
        description:
          'Everything that `contentHash` covers, for the approver: what each network gets, then what is stored and not sent. The names of files and accounts are those of now.',
      }),
    },
    {
      description:
        'A request for approval. It is bound to one content: a post of which one character changes needs another.',
    },
  ),
);

/** Also shown on the post. */
export const PostDecision = Named(
  'PostDecision',
  Type.Object(
    {
      approvalId: said(
        Uuid,
        'The request that was decided. Another than the `approvalId` of the post: the decision is about a former content.',
      ),
      status: said(
        OpenEnum(
          'PostDecisionStatus',
          ['approved', 'rejected', 'changes_requested'],
          'approved: the content goes out; rejected: the held targets were canceled; changes_requested: the author is asked for another content.',
        ),
        'What was decided.',
      ),
      decidedBy: said(ActorRef, 'Who decided.'),
      decidedAt: said(Instant, 'When it was decided.'),
      comment: said(Nullable(Type.String()), 'What the approver wrote for the author; null: nothing.'),
    },
    { description: 'What an approver decided about a post.' },
  ),
);
