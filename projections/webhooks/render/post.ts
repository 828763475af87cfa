import { excerptOf } from '#domain/post/content.ts';
import type { TargetOutcome } from '#domain/post/post.ts';
import type { postPublic } from '#schemas/http/webhook-events/post.ts';
import type { Plan, PostBody, PostEvent } from '#schemas/post.ts';
import type { Publisher } from '../../engine/publisher.ts';

type Data<T extends PostEvent['type']> = Extract<PostEvent, { readonly type: T }>['data'];

interface Post {
  readonly clientId: string;
  readonly campaignId: string | null;
  readonly externalRef: string | null;
  /** Target id → index in the plan in force; all states of one plan share the map. */
  readonly indexes: ReadonlyMap<string, number>;
  /** By index: the outcome of the target. */
  readonly outcomes: Uint8Array;
  /** Number of the plan in force; 0: the post is a draft. */
  readonly plan: number;
  /** By index: when the target is due, as planned or revised. */
  readonly dues: readonly string[];
  /** The targets of the newest request for approval, and when the first of them is due. */
  readonly submitted: { readonly targets: number; readonly dueAt: string };
}

const codes: Readonly<Record<TargetOutcome, number>> = { published: 1, failed: 2, canceled: 3 };
const open = 0;

const labelsOf = ({ campaignId, externalRef }: PostBody) => ({ campaignId, externalRef: externalRef ?? null });

const none = { targets: 0, dueAt: '' };

const initialPost = (clientId: string, body: PostBody, plan: Plan | null): Post => {
  const targets = plan?.targets ?? [];
  return {
    clientId,
    ...labelsOf(body),
    indexes: new Map(targets.map(({ targetId }, index) => [targetId, index])),
    outcomes: new Uint8Array(targets.length),
    plan: plan?.number ?? 0,
    dues: targets.map(({ dueAt }) => dueAt),
    submitted: none,
  };
};

const withTimes = (postPublisher: Post, { targetIds, times }: Data<'PostRevised'>): Post => {
  if (times === null) return postPublisher;
  const dues = [...postPublisher.dues];
  for (const [at, id] of targetIds.entries()) {
    const place = postPublisher.indexes.get(id);
    const due = times[at]?.dueAt;
    if (place !== undefined && due !== undefined) dues[place] = due;
  }
  return { ...postPublisher, dues };
};

const submittedOf = ({ indexes, dues }: Post, { targetIds }: Data<'PostSubmittedForApproval'>): Post['submitted'] => {
  const [dueAt = ''] = targetIds.map((id) => dues[indexes.get(id) ?? -1] ?? '').sort();
  return { targets: targetIds.length, dueAt };
};

const marked = (postPublisher: Post, targetId: string, code: number): Post => {
  const index = postPublisher.indexes.get(targetId);
  return index === undefined ? postPublisher : { ...postPublisher, outcomes: postPublisher.outcomes.with(index, code) };
};

/** A revise reaches failed targets: the counts leave them out until their next outcome. */
const reopened = (postPublisher: Post, targetId: string): Post =>
  postPublisher.outcomes[postPublisher.indexes.get(targetId) ?? -1] === codes.failed
    ? marked(postPublisher, targetId, open)
    : postPublisher;

/** The text that names a post. */
const textOf = ({ content, thread }: PostBody): string =>
  content || (thread?.segments.find((segment) => segment.content !== '')?.content ?? '');

const composed = (body: PostBody) => ({
  excerpt: excerptOf(textOf(body)),
  mediaIds: body.mediaIds,
  ...labelsOf(body),
});

const timesOf = ({ targets }: Plan) => {
  let [scheduledAt, lastScheduledAt] = ['\uffff', ''];
  for (const { dueAt } of targets) {
    if (dueAt < scheduledAt) scheduledAt = dueAt;
    if (dueAt > lastScheduledAt) lastScheduledAt = dueAt;
  }
  return { scheduledAt, lastScheduledAt };
};

const idsOf = (postId: string, { clientId, campaignId, externalRef }: Post) => ({
  postId,
  clientId,
  campaignId,
  externalRef,
});

const settled = (postId: string, postPublisher: Post) => {
  const counts = { total: postPublisher.outcomes.length, published: 0, failed: 0, canceled: 0 };
  for (const code of postPublisher.outcomes) {
    if (code === codes.published) counts.published += 1;
    else if (code === codes.failed) counts.failed += 1;
    else if (code === codes.canceled) counts.canceled += 1;
  }
  return { ...idsOf(postId, postPublisher), counts };
};

const failedIds = ({ indexes, outcomes }: Post): string[] =>
  [...indexes].flatMap(([id, place]) => (outcomes[place] === codes.failed ? [id] : []));

const decisionOf = ({ decidedBy, comment }: Data<'PostReleased' | 'PostReturnedToDraft'>) => ({ decidedBy, comment });

/** A post as a whole. Outcomes of its targets are published by the targets themselves. */
export const postPublisher: Publisher<typeof postPublic, PostEvent, Post> = {
  rules: {
    PostDrafted: [
      {
        type: 'post.created',
        ofEvent: ({ id, data: { clientId, createdBy, body } }) => ({
          postId: id,
          clientId,
          status: 'draft',
          createdBy,
          ...composed(body),
          targetCount: 0,
          scheduledAt: null,
        }),
      },
    ],
    DraftReplaced: [
      {
        type: 'post.updated',
        ofStream: ({ id, data }, { clientId }) => ({ postId: id, clientId, ...composed(data.body) }),
      },
    ],
    PostScheduled: [
      {
        type: 'post.created',
        // Only a copy is stored behind fences: a post of a caller is then created under another id.
        birth: ({ recycledFrom }) => recycledFrom !== undefined,
        ofEvent: ({ id, data: { clientId, createdBy, body, plan, held } }) => ({
          postId: id,
          clientId,
          status: held === true ? 'pending_approval' : 'scheduled',
          createdBy,
          ...composed(body),
          targetCount: plan.targets.length,
          scheduledAt: timesOf(plan).scheduledAt,
        }),
      },
      {
        type: 'post.scheduled',
        ofEvent: ({ id, data: { clientId, body, plan } }) => ({
          postId: id,
          clientId,
          plan: plan.number,
          ...labelsOf(body),
          ...timesOf(plan),
          platforms: [...new Set(plan.targets.map(({ platform }) => platform))].sort(),
          targetCount: plan.targets.length,
        }),
      },
    ],
    PostSubmittedForApproval: [
      {
        type: 'post.submitted',
        ofStream: ({ id, data }, { clientId, plan }) => ({
          postId: id,
          clientId,
          approvalId: data.approvalId,
          plan,
          submittedBy: data.submittedBy,
          targetCount: data.targetIds.length,
        }),
      },
    ],
    PostReleased: [
      {
        type: 'post.released',
        ofStream: ({ id, data, occurredAt }, { clientId, submitted }) => ({
          postId: id,
          clientId,
          approvalId: data.approvalId,
          ...decisionOf(data),
          // What was due before is due at once.
          scheduledAt: [submitted.dueAt, occurredAt].sort()[1] ?? occurredAt,
          targetCount: submitted.targets,
        }),
      },
    ],
    PostReturnedToDraft: [
      {
        type: 'post.returned_to_draft',
        ofStream: ({ id, data }, { clientId }) => ({
          ...{ postId: id, clientId, approvalId: data.approvalId },
          ...decisionOf(data),
        }),
      },
    ],
    PostDiscarded: [{ type: 'post.discarded', ofStream: ({ id }, subject) => idsOf(id, subject) }],
    PostRevised: [
      {
        type: 'post.revised',
        ofStream: ({ id, data }, { clientId }) => ({
          postId: id,
          clientId,
          changed: data.changed,
          held: data.held === true,
          ...composed(data.body),
          targetCount: data.targetIds.length,
        }),
      },
    ],
    PostTargetsChanged: 'an intent: each changed target publishes its own event',
    PostTargetsSkipped: 'an intent that came too late for a target changes nothing',
    PostTargetSettled: 'the target has published its own event',
    PostCampaignChanged: [
      {
        type: 'post.campaign_changed',
        ofStream: ({ id, data: { campaignId, previousCampaignId } }, { clientId }) => ({
          postId: id,
          clientId,
          campaignId,
          previousCampaignId,
        }),
      },
    ],
    PostRecycleSet: [
      {
        type: 'post.recycle_changed',
        ofStream: ({ id, data: { enabled, everyDays, times, until } }, { clientId }) => ({
          postId: id,
          clientId,
          ...{ enabled, everyDays, times, until, stoppedReason: null },
        }),
      },
    ],
    PostRecycleCleared: [
      {
        type: 'post.recycle_changed',
        ofStream: ({ id, data: { reason } }, { clientId }) => ({
          postId: id,
          clientId,
          ...{ enabled: false, everyDays: null, times: null, until: null },
          stoppedReason: reason === 'requested' ? null : reason,
        }),
      },
    ],
    PostRecyclePlanned: 'it follows from the settings and from the copy before, which are published',
    PostRecycled: [
      {
        type: 'post.recycled',
        ofStream: ({ id, data: { newPostId, occurrence, scheduledAt } }, { clientId }) => ({
          postId: id,
          clientId,
          ...{ newPostId, occurrence, scheduledAt },
        }),
      },
    ],
    PostRecycleFailed: [
      {
        type: 'post.recycle_failed',
        ofStream: ({ id, data: { code, message } }, { clientId }) => ({ postId: id, clientId, code, message }),
      },
    ],
    PostTargetReopened: 'the target has published its own event',
    PostAbandoned: 'a step of reserving places of a quota; nothing that a caller sees changes',
    PostExternalRefClaimLapsed: 'a step of claiming a reference; events of the post that has it show it',
    PostPublished: [
      {
        type: 'post.published',
        ofStream: ({ id, data }, subject) => ({ ...settled(id, subject), publishedAt: data.publishedAt }),
      },
    ],
    PostPartiallyPublished: [
      {
        type: 'post.partially_published',
        ofStream: ({ id, data }, subject) => ({
          ...settled(id, subject),
          publishedAt: data.publishedAt,
          failedTargetIds: failedIds(subject),
        }),
      },
    ],
    PostFailed: [
      {
        type: 'post.failed',
        ofStream: ({ id }, subject) => ({ ...settled(id, subject), failedTargetIds: failedIds(subject) }),
      },
    ],
    PostCanceled: [
      {
        type: 'post.canceled',
        ofStream: ({ id, data }, subject) => ({
          ...idsOf(id, subject),
          reason: data.reason,
          targetCount: subject.outcomes.length,
        }),
      },
    ],
  },

  evolve: (subject, event) => {
    switch (event.type) {
      case 'PostDrafted':
        return initialPost(event.data.clientId, event.data.body, null);
      case 'PostScheduled': {
        const { clientId, body, plan } = event.data;
        return initialPost(clientId, body, plan);
      }
      default:
        if (subject === null) return null;
    }
    switch (event.type) {
      case 'DraftReplaced':
        return { ...subject, ...labelsOf(event.data.body) };
      case 'PostCampaignChanged':
        return { ...subject, campaignId: event.data.campaignId };
      case 'PostRevised':
        return event.data.targetIds.reduce(reopened, withTimes(subject, event.data));
      case 'PostSubmittedForApproval':
        return { ...subject, submitted: submittedOf(subject, event.data) };
      case 'PostReturnedToDraft':
        return { ...subject, indexes: new Map(), outcomes: new Uint8Array(), plan: 0, dues: [], submitted: none };
      case 'PostTargetSettled':
        return marked(subject, event.data.targetId, codes[event.data.outcome]);
      case 'PostTargetReopened':
        return marked(subject, event.data.targetId, open);
      default:
        return subject;
    }
  },
};
