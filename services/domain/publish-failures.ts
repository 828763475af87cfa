import type { MediaFailure } from '#schemas/media.ts';
import type { Failure } from '#schemas/target.ts';
import { mediaFailure } from './media-failures.ts';

/** Failures that are found without a network, beside those a network tells; served under /errors/{code}. */

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
  'The account must be connected anew before it can publish.',
  true,
  'user',
);
export const disconnected = failure(
  'reauth_required',
  'account_disconnected',
  'The account is not connected any more.',
  true,
  'user',
);
/** Said of a thread whose beginning is out; any other target is canceled. */
export const threadInterrupted = failure(
  'permission',
  'thread_interrupted',
  'The client was archived before the rest of the thread went out.',
  false,
  'user',
);
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
  'Publishing stopped on an error of ours before the network was called.',
  true,
  'service',
);
export const outcomeUnknown = failure(
  'unknown',
  'outcome_unknown',
  'The network was asked to publish and did not say whether it did.',
  false,
  'platform',
);
export const outcomeUnreadable = failure(
  'unknown',
  'outcome_unreadable',
  'The network answered with something that cannot be recorded.',
  false,
  'service',
);

/** A file is at fault. Their codes are served with those of media. */
const aboutMedia = (
  mediaId: string,
  { code, message }: MediaFailure,
  retryable: boolean,
  actor: Failure['actor'],
): Failure => ({ ...failure('media', code, message, retryable, actor), mediaId });

/** Its rendition was not made within the time that is waited for one. */
export const mediaNotReady = (mediaId: string): Failure =>
  aboutMedia(mediaId, mediaFailure('media_not_ready'), true, 'service');
export const mediaMissing = (mediaId: string): Failure =>
  aboutMedia(mediaId, mediaFailure('media_missing'), false, 'user');
/** What the network needs cannot be made of it: why, in the words of the rendition. */
export const renditionMissing = (mediaId: string, why: MediaFailure): Failure =>
  aboutMedia(mediaId, why, false, 'user');

export const publishFailures: readonly Failure[] = [
  reauthRequired,
  disconnected,
  threadInterrupted,
  noAdapter,
  interrupted,
  adapterFailed,
  outcomeUnknown,
  outcomeUnreadable,
];
