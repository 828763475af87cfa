import type { Actor } from '#schemas/common.ts';
import type { PostEvent } from '#schemas/post.ts';
import { type Fact, Rejection } from '../decider.ts';
import { approvalIdOf } from '../ids.ts';

/**
 * The approval of a post, as the post's own stream knows it. Its law: a post is released only by the approval of its
 * newest request and only with the content that was asked for; a change of a held or a released post asks anew in
 * the same append, and its targets are held again before the next release.
 */

/** With a plan or a revise: the post goes out only once a person has approved it. */
export interface Submission {
  readonly postId: string;
  readonly hash: string;
  readonly submittedBy: Actor;
}

export interface PostApproval {
  readonly id: string;
  /** 1 for the first request of the post. */
  readonly request: number;
  readonly hash: string;
  readonly status: 'pending' | 'released' | 'rejected';
  /** The targets that are held until this request is approved. */
  readonly targetIds: readonly string[];
  /** No target of the plan was ever released, so that none is out: the whole post can become a draft again. */
  readonly isWhole: boolean;
}

interface Approved {
  readonly approval: PostApproval | null;
  /** Requests so far, of all plans. */
  readonly requests: number;
}

/** What a post under a plan has beyond `Approved`. */
interface Planned extends Approved {
  readonly planRevision: number;
}

type Submitted = Extract<PostEvent, { type: 'PostSubmittedForApproval' }>;

/** The event that asks for the approval of these targets, in the append that plans or revises the post. */
export const submit = (
  { postId, hash, submittedBy }: Submission,
  requests: number,
  targetIds: readonly string[],
): readonly [Submitted] => {
  const request = requests + 1;
  const approvalId = approvalIdOf(postId, request);
  return [
    { type: 'PostSubmittedForApproval', data: { approvalId, request, hash, submittedBy, targetIds: [...targetIds] } },
  ];
};

/**
 * Whether a revise leaves the approval as it is: times alone changed, and a person has approved the content for each of
 * these targets. The approver was shown that nothing goes out on the other targets. A revise of a post that still waits
 * asks anew, since its approver must see the times too.
 */
export const keepsApproval = ({ approval }: Approved, { hash }: Submission, targetIds: readonly string[]): boolean =>
  approval !== null &&
  approval.status === 'released' &&
  approval.hash === hash &&
  targetIds.every((id) => approval.targetIds.includes(id));

export const superseded = (): Rejection =>
  new Rejection('approval_superseded', 'The post was changed or canceled after this approval was asked for.');

/** A decision of a person about the post's request. */
export type DecidePost =
  | { readonly type: 'Release'; readonly approvalId: string; readonly hash: string; readonly decided: Decision }
  | { readonly type: 'Reject'; readonly approvalId: string }
  | { readonly type: 'ReturnToDraft'; readonly approvalId: string; readonly decided: Decision };

/** Who decided, and what they wrote. */
interface Decision {
  readonly by: Actor;
  readonly comment: string | null;
}

const followed = ({ by, comment }: Decision) => ({ decidedBy: by, comment });

/**
 * @param open targets that are not settled and that no cancel names
 * @throws Rejection `approval_superseded` where the post has moved on
 */
export const decidePost = (
  command: DecidePost,
  approval: PostApproval | null,
  open: (targetIds: readonly string[]) => readonly string[],
  planned: readonly string[],
): readonly PostEvent[] => {
  if (approval === null || approval.id !== command.approvalId) throw superseded();
  const { status, targetIds, isWhole } = approval;
  const held = open(isWhole ? planned : targetIds);
  switch (command.type) {
    case 'Release':
      if (status === 'released') return [];
      if (status !== 'pending' || approval.hash !== command.hash || open(targetIds).length === 0) throw superseded();
      return [
        { type: 'PostReleased', data: { approvalId: approval.id, hash: approval.hash, ...followed(command.decided) } },
      ];
    case 'Reject':
      if (status === 'rejected') return [];
      if (status !== 'pending' || held.length === 0) throw superseded();
      return [
        {
          type: 'PostTargetsChanged',
          data: { change: { kind: 'cancel', reason: 'approval_rejected' }, targetIds: [...held] },
        },
      ];
    case 'ReturnToDraft':
      if (status !== 'pending' || held.length === 0) throw superseded();
      // Of a post that was released before, a target may be out: it stays held, and waits for a revise.
      return isWhole
        ? [{ type: 'PostReturnedToDraft', data: { approvalId: approval.id, ...followed(command.decided) } }]
        : [];
  }
};

/** The approval after a post was submitted: with its plan, or with the revise right before. */
export const submitted = (
  { approval, planRevision }: Planned,
  { approvalId: id, request, hash, targetIds }: Submitted['data'],
  { revision }: Fact,
): Approved & { readonly approval: PostApproval } => {
  const isWhole = revision === planRevision + 1 || (approval?.status === 'pending' && approval.isWhole);
  return { requests: request, approval: { id, request, hash, status: 'pending', targetIds, isWhole } };
};

/** Whether targets of the post wait for a person. */
export const isAwaited = ({ approval }: Approved, isOpen: (targetId: string) => boolean): boolean =>
  approval !== null && approval.status !== 'released' && approval.targetIds.some(isOpen);

/** The revise that asked came too late for these targets: they keep the content that they had, and wait for nobody. */
export const withoutLate = (
  approval: PostApproval | null,
  intents: readonly { readonly revision: number; readonly held?: true }[],
  { intentRevision, targetIds }: Extract<PostEvent, { type: 'PostTargetsSkipped' }>['data'],
): PostApproval | null => {
  const asking = intents.findLast(({ held = false }) => held);
  if (approval === null || asking?.revision !== intentRevision) return approval;
  return { ...approval, targetIds: approval.targetIds.filter((id) => !targetIds.includes(id)) };
};

/** A post joins a campaign, which it may do at any time, or leaves one. It belongs to one at most. */
export type CampaignChange =
  | { readonly type: 'JoinCampaign'; readonly campaignId: string }
  /** Changes nothing where the post belongs to another campaign, or to none. */
  | { readonly type: 'LeaveCampaign'; readonly campaignId: string };

/** @param present the campaign that the post belongs to; null: none */
export const changeCampaign = ({ type, campaignId }: CampaignChange, present: string | null): readonly PostEvent[] => {
  const leaves = type === 'LeaveCampaign';
  if ((present === campaignId) !== leaves) return [];
  return [
    { type: 'PostCampaignChanged', data: { campaignId: leaves ? null : campaignId, previousCampaignId: present } },
  ];
};
