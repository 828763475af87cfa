import { Type } from 'typebox';
import { ActorRef, Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { maxTargets, postEvents } from '#schemas/post.ts';
import { Excerpt, example, exampleActor, examplePost, instants, postIds, publicEvent } from './common.ts';

/** Events of a post as a whole; the `target.*` events report each destination. */

const Count = Type.Integer({ minimum: 0, maximum: maxTargets });
const Counts = Type.Object({ total: Count, published: Count, failed: Count, canceled: Count });
const MediaIds = Type.Array(Uuid, { maxItems: 20 });
const Campaign = Nullable(Uuid);
const Plan = Type.Integer({
  minimum: 1,
  description: '1 for the first plan; publishing a returned draft makes the next.',
});
const FailedTargetIds = Type.Array(Uuid, { maxItems: maxTargets });
const Changed = Type.Array(Type.String({ maxLength: 50 }), {
  maxItems: 50,
  description: 'Names of the changed members.',
});
const TargetCount = Type.Integer({
  minimum: 0,
  maximum: maxTargets,
  description: '0 for a draft: its selection is resolved when it is published.',
});

const composed = { excerpt: Excerpt, mediaIds: MediaIds, campaignId: Campaign };
const exampleText = { excerpt: 'Our spring collection is here.', mediaIds: [example.assetId], campaignId: null };
const settled = { campaignId: Campaign, counts: Counts };

export const postPublic = {
  'post.created': publicEvent(
    'A post was composed.',
    Type.Object({
      ...postIds,
      status: Type.Enum(['draft', 'scheduled', 'pending_approval']),
      createdBy: ActorRef,
      ...composed,
      targetCount: TargetCount,
      scheduledAt: Nullable(Type.String({ format: 'date-time', description: 'When the first target is due.' })),
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
  'post.updated': publicEvent('A draft was replaced.', Type.Object({ ...postIds, ...composed }), {
    ...examplePost,
    ...exampleText,
  }),
  'post.scheduled': publicEvent(
    'A post was scheduled: each target has its time.',
    Type.Object({
      ...postIds,
      plan: Plan,
      campaignId: Campaign,
      scheduledAt: Instant,
      lastScheduledAt: Instant,
      platforms: Type.Array(Platform, { minItems: 1 }),
      targetCount: Type.Integer({ minimum: 1, maximum: maxTargets }),
    }),
    {
      ...examplePost,
      plan: 1,
      campaignId: null,
      scheduledAt: instants.due,
      lastScheduledAt: instants.later,
      platforms: ['bluesky', 'threads'],
      targetCount: 2,
    },
  ),
  'post.submitted': publicEvent(
    'A post was submitted for approval; its targets are held.',
    Type.Object({ ...postIds, approvalId: Uuid, plan: Plan, submittedBy: ActorRef, targetCount: Count }),
    { ...examplePost, approvalId: example.approvalId, plan: 1, submittedBy: exampleActor, targetCount: 2 },
  ),
  'post.released': publicEvent(
    'A post was approved; its targets are published when they are due.',
    Type.Object({ ...postIds, approvalId: Uuid, scheduledAt: Instant, targetCount: Count }),
    { ...examplePost, approvalId: example.approvalId, scheduledAt: instants.due, targetCount: 2 },
  ),
  'post.returned_to_draft': publicEvent(
    'An approver requested changes: the post is a draft again.',
    Type.Object({ ...postIds, approvalId: Uuid }),
    { ...examplePost, approvalId: example.approvalId },
  ),
  'post.revised': publicEvent(
    'A scheduled post was changed for its unpublished targets.',
    Type.Object({ ...postIds, changed: Changed, ...composed, targetCount: Count }),
    { ...examplePost, changed: ['content'], ...exampleText, targetCount: 2 },
  ),
  'post.published': publicEvent(
    'Every target of a post that was not canceled is published.',
    Type.Object({ ...postIds, ...settled, publishedAt: Instant }),
    {
      ...examplePost,
      campaignId: null,
      counts: { total: 2, published: 2, failed: 0, canceled: 0 },
      publishedAt: instants.published,
    },
  ),
  'post.partially_published': publicEvent(
    'All targets are settled, some of them failed; sent once per post.',
    Type.Object({ ...postIds, ...settled, publishedAt: Instant, failedTargetIds: FailedTargetIds }),
    {
      ...examplePost,
      campaignId: null,
      counts: { total: 2, published: 1, failed: 1, canceled: 0 },
      publishedAt: instants.published,
      failedTargetIds: [example.targetId],
    },
  ),
  'post.failed': publicEvent(
    'All targets are settled, none was published.',
    Type.Object({ ...postIds, ...settled, failedTargetIds: FailedTargetIds }),
    {
      ...examplePost,
      campaignId: null,
      counts: { total: 1, published: 0, failed: 1, canceled: 0 },
      failedTargetIds: [example.targetId],
    },
  ),
  'post.canceled': publicEvent(
    'Every target was canceled; sent once per post.',
    Type.Object({
      ...postIds,
      campaignId: Campaign,
      reason: postEvents.PostCanceled.properties.reason,
      targetCount: Count,
    }),
    { ...examplePost, campaignId: null, reason: 'targets_canceled', targetCount: 2 },
  ),
  'post.recycled': publicEvent(
    'A recycled post was published again, as a new post.',
    Type.Object({ ...postIds, newPostId: Uuid, occurrence: Type.Integer({ minimum: 1 }), scheduledAt: Instant }),
    { ...examplePost, newPostId: example.nextPostId, occurrence: 1, scheduledAt: instants.due },
  ),
  'post.recycle_changed': publicEvent(
    'The recycling of a post was set or cleared.',
    Type.Object({
      ...postIds,
      enabled: Type.Boolean(),
      everyDays: Nullable(Type.Integer({ minimum: 1, maximum: 365 })),
      times: Nullable(Type.Integer({ minimum: 1, maximum: 100 })),
      until: Nullable(Instant),
    }),
    { ...examplePost, enabled: true, everyDays: 30, times: 3, until: null },
  ),
  'post.campaign_changed': publicEvent(
    'A post was added to a campaign or removed from one.',
    Type.Object({ ...postIds, campaignId: Campaign, previousCampaignId: Campaign }),
    { ...examplePost, campaignId: example.campaignId, previousCampaignId: null },
  ),
};
