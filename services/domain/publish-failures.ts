import type { MediaFailure } from '#schemas/media.ts';
import type { Failure } from '#schemas/target.ts';
import { mediaFailure } from './media-failures.ts';
import { failureCodes } from './platforms/failure-codes.ts';

/** Failures that this service finds itself; networks report others. Served under /errors/{code}. */

const failure = (
  category: Failure['category'],
  code: string,
  message: string,
  retryable: boolean,
  actor: Failure['actor'],
): Failure => ({
  category,
  code,
  message,
  platformCode: null,
  platformMessage: null,
  retryable,
  actor,
  mediaId: null,
});

export const reauthRequired = failure(
  'reauth_required',
  'account_reauth_required',
  'The account must be connected again before it can publish.',
  true,
  'user',
);
export const disconnected = failure(
  'reauth_required',
  'account_disconnected',
  'The account is no longer connected.',
  true,
  'user',
);
export const approvalTooLate = failure(
  'permission',
  'approval_too_late',
  'Nobody had approved the post when this target was due.',
  false,
  'user',
);
/** For a thread with a published segment; any other target is canceled. */
export const threadInterrupted = failure(
  'permission',
  'thread_interrupted',
  'The client was archived before the rest of the thread went out.',
  false,
  'user',
);
export const cadenceReached = failure(
  'rate_limited',
  'cadence_reached',
  'The account has published as often as it may for now; the publisher tries again at retryAt.',
  true,
  'service',
);
/** No waiting helps: the account was never going to be allowed what the target needs. */
export const cadenceNeverFits = failure(
  'rate_limited',
  'cadence_never_fits',
  'The target makes more calls than its account may make within one window, or its account may not publish at all. Publish a shorter thread, or have the limit raised, then retry.',
  true,
  'user',
);
/** Only the network or a person knows whether the post went out in the time that was lost. */
export const restored = failure(
  'unknown',
  'restored',
  'This service was restored from an older copy, or took the workspace over from another one, and does not know whether the post went out there; look at the account.',
  false,
  'user',
);
/** Uses up no try: an operator lets nothing out, and the target goes out once that ends. */
export const publishingHeld = failure(
  'unknown',
  'publishing_held',
  'Publishing is held by an operator; nothing was sent, and the target goes out once it is resumed.',
  true,
  'service',
);
/** Uses up no try either: the whole network rests until an operator has set a newer version. */
export const apiVersionEnded = failure(
  'permission',
  'api_version_ended',
  failureCodes.api_version_ended,
  true,
  'service',
);
/** Whether a target that waits for this has used up no try. */
export const usesUpNoTry = ({ code }: Pick<Failure, 'code'>): boolean =>
  code === publishingHeld.code || code === apiVersionEnded.code;
export const noAdapter = failure(
  'permission',
  'network_not_supported',
  'This installation cannot publish to that network yet.',
  false,
  'service',
);
export const interrupted = failure(
  'transient',
  'publish_interrupted',
  'Publishing was interrupted before the network was called.',
  true,
  'service',
);
export const adapterFailed = failure(
  'transient',
  'publish_error',
  'Publishing stopped on an error of this service before the network was called.',
  true,
  'service',
);
export const outcomeUnknown = failure(
  'unknown',
  'outcome_unknown',
  'The network was called to publish, and the service does not know whether it published.',
  false,
  'platform',
);
/** The outcome of a post that the network accepted is unknown from its limit on. */
export const notShown = failure(
  'unknown',
  'post_not_shown',
  'The network accepted the post, and has neither shown nor refused it within its time.',
  false,
  'platform',
);
/** The network shows the account's posts to nobody but people. */
export const outcomeNotAskable = failure(
  'unknown',
  'outcome_not_askable',
  'The network was called to publish, did not say whether it published, and does not show posts of this account to the service. Look at the account, and have the operator record what you find; do not post it again.',
  false,
  'user',
);
/** Each call had no answer, and the network proved that it made nothing. */
export const publishUnanswered = failure(
  'platform_down',
  'publish_unanswered',
  'The network took several calls to publish, answered none of them, and has published nothing.',
  true,
  'platform',
);
/** The first comment may be under the post or not. */
export const firstCommentUnknown = failure(
  'unknown',
  'first_comment_unknown',
  'The network was called to comment, and the service does not know whether it did. The comment is not repeated.',
  false,
  'platform',
);
export const firstCommentPostUnknown = failure(
  'unknown',
  'first_comment_post_unknown',
  'Nobody knows the id of the published post, so the service cannot comment on it.',
  false,
  'user',
);
export const firstCommentInterrupted = failure(
  'permission',
  'first_comment_interrupted',
  'The client was archived before the first comment was posted.',
  false,
  'user',
);
/** Of a step behind a published post: done again it does no harm, and each try had no answer. */
export const afterStepUnanswered = failure(
  'platform_down',
  'after_step_unanswered',
  'The post is out. The network did not answer the calls for what follows it, so the service does not know whether they had effect.',
  false,
  'platform',
);
export const afterStepPostUnknown = failure(
  'unknown',
  'after_step_post_unknown',
  'Nobody knows the id of the published post, so the service cannot give it what follows it, such as its cover.',
  false,
  'user',
);
export const afterStepInterrupted = failure(
  'permission',
  'after_step_interrupted',
  'The client was archived before the published post had all that follows it, such as its cover.',
  false,
  'user',
);
export const outcomeUnreadable = failure(
  'unknown',
  'outcome_unreadable',
  'The network answered with something that cannot be recorded.',
  false,
  'service',
);

/** Of an undo: the post is out, or is about to be. */
export const undoTooLate = failure(
  'permission',
  'undo_too_late',
  'The network has published the scheduled post, or is about to, and no longer deletes it.',
  false,
  'platform',
);
export const nativePostGone = failure(
  'unknown',
  'native_post_gone',
  'The network no longer has the scheduled post: somebody deleted it there.',
  true,
  'user',
);
export const nativePostLate = failure(
  'unknown',
  'native_post_late',
  'The due time has passed, and the network has not published the scheduled post.',
  false,
  'platform',
);

/** Failures of a file. The API serves their codes with the codes of media. */
const aboutMedia = (
  mediaId: string,
  { code, message }: MediaFailure,
  retryable: boolean,
  actor: Failure['actor'],
): Failure => ({ ...failure('media', code, message, retryable, actor), mediaId });

/** The rendition was not ready within the time limit. */
export const mediaNotReady = (mediaId: string): Failure =>
  aboutMedia(mediaId, mediaFailure('media_not_ready'), true, 'service');
export const mediaMissing = (mediaId: string): Failure =>
  aboutMedia(mediaId, mediaFailure('media_missing'), false, 'user');
/** The file cannot be rendered as the network requires; code and message are those of the rendition's failure. */
export const renditionMissing = (mediaId: string, why: MediaFailure): Failure =>
  aboutMedia(mediaId, why, false, 'user');

export const publishFailures: readonly Failure[] = [
  reauthRequired,
  disconnected,
  threadInterrupted,
  cadenceReached,
  cadenceNeverFits,
  publishingHeld,
  restored,
  noAdapter,
  interrupted,
  adapterFailed,
  outcomeUnknown,
  notShown,
  outcomeNotAskable,
  publishUnanswered,
  firstCommentUnknown,
  firstCommentPostUnknown,
  firstCommentInterrupted,
  afterStepUnanswered,
  afterStepPostUnknown,
  afterStepInterrupted,
  outcomeUnreadable,
  undoTooLate,
  nativePostGone,
  nativePostLate,
];
