import type { PostEvent } from '#schemas/post.ts';
import type { TargetEvent, TargetStatus } from '#schemas/target.ts';

/** The state machines as they are drawn, by event. Whatever a decider accepts must be one of these arrows. */

type TargetPlace = 'none' | TargetStatus;
type TargetArrow = `${TargetPlace} → ${TargetPlace}`;

const stays = (...places: readonly TargetStatus[]): readonly TargetArrow[] =>
  places.map((place): TargetArrow => `${place} → ${place}`);

export const targetArrows: Readonly<Record<TargetEvent['type'], readonly TargetArrow[]>> = {
  TargetScheduled: ['none → pending'],
  // A held target that is revised is held once more; a failed one waits before it is tried again.
  TargetHeld: ['pending → awaiting_approval', 'failed → awaiting_approval', ...stays('awaiting_approval')],
  TargetReleased: ['awaiting_approval → pending'],
  TargetRescheduled: [
    ...stays('pending', 'awaiting_approval'),
    ...(['rate_limited → pending', 'handed_to_platform → pending'] as const),
  ],
  TargetRevised: [...stays('pending', 'awaiting_approval', 'failed'), 'handed_to_platform → pending'],
  TargetCanceled: [
    ...(['pending → canceled', 'awaiting_approval → canceled', 'rate_limited → canceled'] as const),
    // A hand-over that nobody wants any more, before its call or once the network turns out to have nothing.
    ...(['handed_to_platform → canceled', 'publishing → canceled', 'outcome_unknown → canceled'] as const),
  ],
  TargetPublishStarted: ['pending → publishing'],
  TargetPublishCheckpointed: stays('publishing'),
  TargetPublishTakenOver: stays('publishing'),
  TargetSegmentPublished: stays('publishing', 'outcome_unknown'),
  TargetHandedToPlatform: ['publishing → handed_to_platform', 'outcome_unknown → handed_to_platform'],
  TargetUndoRequested: stays('handed_to_platform', 'publishing', 'outcome_unknown'),
  TargetUndoFailed: stays('handed_to_platform', 'publishing', 'outcome_unknown'),
  TargetNativeTimeChanged: stays('handed_to_platform'),
  TargetNativeRevised: stays('handed_to_platform'),
  TargetScheduleModeChanged: stays('pending', 'awaiting_approval'),
  // After a lost answer the network says that it has the post and looks at it.
  TargetAcceptedByPlatform: ['publishing → processing', 'outcome_unknown → processing'],
  TargetPublished: ['publishing → published'],
  // A target is refused at its claim without an attempt.
  TargetFailed: ['publishing → failed', 'pending → failed'],
  TargetApprovalLapsed: ['awaiting_approval → failed'],
  TargetRateLimited: ['publishing → rate_limited'],
  // At the claim of an account that may not publish yet.
  TargetPublishDeferred: ['publishing → pending', 'pending → pending'],
  TargetOutcomeUnknown: [
    ...(['publishing → outcome_unknown', 'handed_to_platform → outcome_unknown'] as const),
    'processing → outcome_unknown',
  ],
  TargetAbsenceObserved: stays('outcome_unknown'),
  TargetOutcomeSettled: [
    ...(['outcome_unknown → published', 'outcome_unknown → failed', 'outcome_unknown → pending'] as const),
    ...(['handed_to_platform → published', 'handed_to_platform → failed'] as const),
    ...(['processing → published', 'processing → failed'] as const),
  ],
  TargetPlaceLapsed: stays('awaiting_approval', 'pending', 'rate_limited', 'failed', 'handed_to_platform'),
  TargetOverdue: stays('pending', 'publishing', 'rate_limited', 'handed_to_platform'),
  // From an unknown outcome: the segment is found, and the next one of the thread is due.
  TargetRequeued: ['failed → pending', 'rate_limited → pending', 'outcome_unknown → pending'],
  TargetFirstCommentScheduled: stays('published'),
  TargetFirstCommentStarted: stays('published'),
  TargetFirstCommentPosted: stays('published'),
  TargetFirstCommentFailed: stays('published'),
  TargetAfterStepScheduled: stays('published'),
  TargetAfterStepStarted: stays('published'),
  TargetAfterStepCompleted: stays('published'),
  TargetAfterStepFailed: stays('published'),
  TargetRemovedOnPlatform: stays('published'),
};

type PostPlace = 'none' | 'draft' | 'live' | 'discarded';
type PostArrow = `${PostPlace} → ${PostPlace}`;
const live: readonly PostArrow[] = ['live → live'];

export const postArrows: Readonly<Record<PostEvent['type'], readonly PostArrow[]>> = {
  PostDrafted: ['none → draft'],
  DraftReplaced: ['draft → draft'],
  PostDiscarded: ['draft → discarded'],
  PostScheduled: ['none → live', 'draft → live'],
  PostSubmittedForApproval: live,
  PostReleased: live,
  PostReturnedToDraft: ['live → draft'],
  PostTargetsChanged: live,
  PostRevised: live,
  PostTargetsSkipped: live,
  PostTargetSettled: live,
  PostCampaignChanged: ['draft → draft', 'live → live'],
  PostRecycleSet: live,
  PostRecyclePlanned: live,
  PostRecycled: live,
  PostRecycleFailed: live,
  // A draft that an approver sent back keeps what was set.
  PostRecycleCleared: ['draft → draft', ...live],
  PostTargetReopened: live,
  PostExternalRefClaimLapsed: ['none → none', 'draft → draft', 'live → live', 'discarded → discarded'],
  PostAbandoned: ['none → none', 'draft → draft', 'live → live', 'discarded → discarded'],
  PostPublished: live,
  PostPartiallyPublished: live,
  PostFailed: live,
  PostCanceled: live,
};

/** The status of a post that follows from its targets; whether one is on its way is shown beside it. */
export const wholeOf = (targets: readonly TargetPlace[]): string => {
  const count = (...places: readonly TargetPlace[]): number => targets.filter((one) => places.includes(one)).length;
  const out = count('published');
  const failed = count('failed');
  if (count('published', 'failed', 'canceled') < targets.length) {
    if (out + failed > 0) return 'publishing';
    return count('awaiting_approval') > 0 ? 'pending_approval' : 'scheduled';
  }
  if (out + failed === 0) return 'canceled';
  if (out === 0) return 'failed';
  return failed === 0 ? 'published' : 'partially_published';
};
