import { Type } from 'typebox';
import { ActorRef, Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { ExternalRef } from '#schemas/externalref.ts';
import { Excerpt, maxTargets, recycleStops } from '#schemas/post.ts';
import { Named, OpenEnum, said } from '#schemas/published.ts';
import { example, exampleActor, examplePost, instants, onceFor, postIds, publicEvent } from './common.ts';

/** Events of a post as a whole; the `target.*` events report each destination. */

const Count = (description: string) => Type.Integer({ minimum: 0, maximum: maxTargets, description });
const Counts = Named(
  'SettledCounts',
  Type.Object(
    {
      total: Count('All targets of the post.'),
      published: Count('Targets that are published.'),
      failed: Count('Targets that failed.'),
      canceled: Count('Targets that were canceled.'),
    },
    { description: 'Number of targets of a settled post by outcome; the outcomes add up to `total`.' },
  ),
);
const CreatedStatus = OpenEnum(
  'PostCreatedStatus',
  ['draft', 'scheduled', 'pending_approval'],
  'draft: it was saved and is not scheduled; scheduled: its targets wait for their time; pending_approval: its targets are held until it is approved.',
);
const CancelReason = OpenEnum(
  'PostCancelReason',
  ['targets_canceled', 'client_archived', 'approval_rejected', 'account_disconnected', 'copy_replaced'],
  'targets_canceled: callers canceled its targets; client_archived: a caller archived the client; approval_rejected: an approver rejected the post; account_disconnected: callers disconnected the account of each target; copy_replaced: the post is a copy that still waited when the next copy of the recycled post was made, which takes its place.',
);
const RecycleStop = OpenEnum(
  'RecycleStop',
  recycleStops,
  'times: as many repetitions as asked for were made; until: the next one would be due after it; client_archived: the client is archived; account_disconnected: no account of the post is connected; failures: three repetitions in a row failed.',
);
const MediaIds = Type.Array(Uuid, { maxItems: 20, description: 'Ids of the media assets of the post, in order.' });
const Campaign = said(Nullable(Uuid), 'The campaign that the post belongs to; null: none.');
const ApprovalId = said(Uuid, 'Id of the request for approval.');
const Plan = Type.Integer({
  minimum: 1,
  description: 'Number of the plan: 1 for the first; publishing a returned draft makes the next.',
});
const ScheduledAt = said(Instant, 'When the first target is due, jitter included.');
const PublishedAt = said(Instant, 'When the first of the targets was published.');
const FailedTargetIds = Type.Array(Uuid, {
  maxItems: maxTargets,
  description: 'Ids of the targets that failed: POST /post-targets/{id}/retry tries one again.',
});
const Changed = Type.Array(Type.String({ maxLength: 50 }), {
  maxItems: 50,
  description: 'Names of the changed members.',
  examples: [['content']],
});

const Ref = said(Nullable(ExternalRef), 'The caller’s own reference of the post; null: none.', {
  examples: ['CMS-1042'],
});
const composed = { excerpt: Excerpt, mediaIds: MediaIds, campaignId: Campaign, externalRef: Ref };
const none = { campaignId: null, externalRef: null };
const exampleText = { excerpt: 'Our spring collection is here.', mediaIds: [example.assetId], ...none };
const settled = { campaignId: Campaign, externalRef: Ref, counts: said(Counts, 'The outcomes of its targets.') };

const decision = {
  decidedBy: said(ActorRef, 'Who decided.'),
  comment: said(Nullable(Type.String({ maxLength: 2000 })), 'What the approver wrote for the author; null: nothing.'),
};

export const postPublic = {
  'post.created': publicEvent(
    'A caller created a post, as a draft or scheduled.',
    Type.Object({
      ...postIds,
      status: said(CreatedStatus, 'The status with which the post begins.'),
      createdBy: said(ActorRef, 'Who created it.'),
      ...composed,
      targetCount: Count('Number of its targets; 0 for a draft: its selection is resolved when it is published.'),
      scheduledAt: Nullable(
        Type.String({
          format: 'date-time',
          description: 'When the first target is due, jitter included; null for a draft.',
        }),
      ),
    }),
    {
      ...examplePost,
      status: 'scheduled',
      createdBy: exampleActor,
      ...exampleText,
      targetCount: 2,
      scheduledAt: instants.due,
    },
  ),
  'post.updated': publicEvent('A caller replaced a draft.', Type.Object({ ...postIds, ...composed }), {
    ...examplePost,
    ...exampleText,
  }),
  'post.scheduled': publicEvent(
    'A caller scheduled a post or published a draft: each target has its due time.',
    Type.Object({
      ...postIds,
      plan: Plan,
      campaignId: Campaign,
      externalRef: Ref,
      scheduledAt: ScheduledAt,
      lastScheduledAt: said(Instant, 'When the last target is due, jitter included.'),
      platforms: Type.Array(Platform, { minItems: 1, description: 'The networks of its targets, each once.' }),
      targetCount: Type.Integer({ minimum: 1, maximum: maxTargets, description: 'Number of its targets.' }),
    }),
    {
      ...examplePost,
      plan: 1,
      ...none,
      scheduledAt: instants.due,
      lastScheduledAt: instants.later,
      platforms: ['bluesky', 'threads'],
      targetCount: 2,
    },
  ),
  'post.discarded': publicEvent(
    'A caller deleted a draft.',
    Type.Object({ ...postIds, campaignId: Campaign, externalRef: Ref }),
    {
      ...examplePost,
      ...none,
    },
  ),
  'post.submitted': publicEvent(
    'A caller submitted a post for approval; its targets are held.',
    Type.Object({
      ...postIds,
      approvalId: ApprovalId,
      plan: Plan,
      submittedBy: said(ActorRef, 'Who submitted it.'),
      targetCount: Count('Number of targets that are held.'),
    }),
    { ...examplePost, approvalId: example.approvalId, plan: 1, submittedBy: exampleActor, targetCount: 2 },
  ),
  'post.released': publicEvent(
    'An approver approved a post; its targets are published when they are due.',
    Type.Object({
      ...postIds,
      approvalId: ApprovalId,
      ...decision,
      scheduledAt: ScheduledAt,
      targetCount: Count('Number of targets that were released.'),
    }),
    {
      ...examplePost,
      approvalId: example.approvalId,
      decidedBy: exampleActor,
      comment: null,
      scheduledAt: instants.due,
      targetCount: 2,
    },
  ),
  'post.returned_to_draft': publicEvent(
    'An approver requested changes: the post is a draft again.',
    Type.Object({ ...postIds, approvalId: ApprovalId, ...decision }),
    {
      ...{ ...examplePost, approvalId: example.approvalId, decidedBy: exampleActor },
      comment: 'Please mention the opening hours.',
    },
  ),
  'post.revised': publicEvent(
    'A caller changed a scheduled post for its unpublished targets.',
    Type.Object({
      ...postIds,
      changed: Changed,
      held: Type.Boolean({
        description:
          'Whether the content waits for an approval: it is then the one that the revise asks for, `post.submitted` follows, and what was released before stays so until the approval. False: the content is released.',
      }),
      ...composed,
      targetCount: Count(
        'Number of targets that go out with the newer content, once it is released; one that the publisher takes at the same moment keeps the former.',
      ),
    }),
    { ...examplePost, changed: ['content'], held: false, ...exampleText, targetCount: 2 },
  ),
  'post.published': publicEvent(
    'The last open target of a post was settled: all targets that were not canceled are published.',
    Type.Object({ ...postIds, ...settled, publishedAt: PublishedAt }),
    {
      ...examplePost,
      ...none,
      counts: { total: 2, published: 2, failed: 0, canceled: 0 },
      publishedAt: instants.published,
    },
  ),
  'post.partially_published': publicEvent(
    `The last open target of a post was settled: some targets are published, others failed. ${onceFor('post')}`,
    Type.Object({ ...postIds, ...settled, publishedAt: PublishedAt, failedTargetIds: FailedTargetIds }),
    {
      ...examplePost,
      ...none,
      counts: { total: 2, published: 1, failed: 1, canceled: 0 },
      publishedAt: instants.published,
      failedTargetIds: [example.targetId],
    },
  ),
  'post.failed': publicEvent(
    'The last open target of a post was settled: some targets failed, and none is published. The event follows again where a caller retries them in vain.',
    Type.Object({ ...postIds, ...settled, failedTargetIds: FailedTargetIds }),
    {
      ...examplePost,
      ...none,
      counts: { total: 1, published: 0, failed: 1, canceled: 0 },
      failedTargetIds: [example.targetId],
    },
  ),
  'post.canceled': publicEvent(
    `Every target of a post was canceled. ${onceFor('post')}`,
    Type.Object({
      ...postIds,
      campaignId: Campaign,
      externalRef: Ref,
      reason: said(CancelReason, 'Why the post is canceled.'),
      targetCount: Count('Number of its targets.'),
    }),
    { ...examplePost, ...none, reason: 'targets_canceled', targetCount: 2 },
  ),
  'post.recycled': publicEvent(
    'The service repeated a recycled post, as a new post.',
    Type.Object({
      ...postIds,
      newPostId: said(Uuid, 'Id of the new post.'),
      occurrence: Type.Integer({ minimum: 1, description: 'Which repetition it is; 1 for the first.' }),
      scheduledAt: said(Instant, 'When the first target of the new post is due.'),
    }),
    { ...examplePost, newPostId: example.nextPostId, occurrence: 1, scheduledAt: instants.due },
  ),
  'post.recycle_failed': publicEvent(
    'A repetition of a recycled post was due, and a check refused it: no new post was made.',
    Type.Object({
      ...postIds,
      code: Type.String({ maxLength: 100, description: 'Code of the refusal, as POST /posts would answer it.' }),
      message: Type.String({ maxLength: 1000, description: 'The refusal in words.' }),
    }),
    { ...examplePost, code: 'media_not_publishable', message: 'The media cannot be published, or not yet.' },
  ),
  'post.recycle_changed': publicEvent(
    'A caller set or cleared the recycling of a post, or the service stopped it.',
    Type.Object({
      ...postIds,
      enabled: Type.Boolean({ description: 'Whether the post is repeated from now on.' }),
      everyDays: said(
        Nullable(Type.Integer({ minimum: 1, maximum: 365 })),
        'Days between two repetitions; null: recycling was cleared or stopped.',
      ),
      times: said(
        Nullable(Type.Integer({ minimum: 1, maximum: 100 })),
        'Number of repetitions at most; null: no limit, or recycling was cleared or stopped.',
      ),
      until: said(
        Nullable(Instant),
        'No repetition is due after it; null: no end, or recycling was cleared or stopped.',
      ),
      stoppedReason: said(Nullable(RecycleStop), 'Why the service stopped it; null: a caller changed it.'),
    }),
    { ...examplePost, enabled: true, everyDays: 30, times: 3, until: null, stoppedReason: null },
  ),
  'post.campaign_changed': publicEvent(
    'A caller added a post to a campaign or removed it from one.',
    Type.Object({
      ...postIds,
      campaignId: Campaign,
      previousCampaignId: said(Nullable(Uuid), 'The campaign that it belonged to before; null: none.'),
    }),
    { ...examplePost, campaignId: example.campaignId, previousCampaignId: null },
  ),
};
