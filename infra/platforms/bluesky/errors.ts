import { type FailureCode, failureCodes } from '#domain/platforms/index.ts';
import type { Failure } from '#schemas/target.ts';
import { type Failed, namedInstant, nextDay } from '../shared/outcomes.ts';
import type { Refused, XrpcResult } from './xrpc.ts';

/** What each error of a server means for a post. Facts: lexicons, `@atproto/pds`, `@atproto/xrpc-server`. */

type Meaning = Pick<Failure, 'category' | 'retryable' | 'actor'> & { readonly code: FailureCode };

const lapsed: Meaning = { category: 'reauth_required', code: 'reauth_required', retryable: true, actor: 'user' };
/** The owner allowed less than the call needs; a new consent mends it. */
const unpermitted: Meaning = { ...lapsed, category: 'permission' };
/** What the account's owner can change at the network: an address that is not confirmed, an account that is too new. */
const forbidden: Meaning = { category: 'permission', code: 'account_not_permitted', retryable: true, actor: 'user' };
const content: Meaning = { category: 'invalid_content', code: 'content_rejected', retryable: false, actor: 'user' };
const media: Meaning = { category: 'media', code: 'content_rejected', retryable: false, actor: 'user' };
const down: Meaning = { category: 'platform_down', code: 'network_down', retryable: true, actor: 'platform' };
const limited: Meaning = {
  category: 'rate_limited',
  code: 'network_rate_limited',
  retryable: true,
  actor: 'platform',
};
const unknownOutcome: Meaning = { category: 'unknown', code: 'outcome_unknown', retryable: false, actor: 'platform' };

/** By the name of the error; the status decides about all others. */
export const meanings: Readonly<Record<string, Meaning>> = {
  ExpiredToken: lapsed,
  InvalidToken: lapsed,
  invalid_token: lapsed,
  invalid_dpop_proof: lapsed,
  use_dpop_nonce: down,
  insufficient_scope: unpermitted,
  ScopeMissingError: unpermitted,
  AuthMissing: lapsed,
  AuthenticationRequired: lapsed,
  AuthFactorTokenRequired: lapsed,
  AccountTakedown: lapsed,
  AccountDeactivated: lapsed,
  AccountNotFound: lapsed,
  RepoNotFound: lapsed,
  RateLimitExceeded: limited,
  BlobNotFound: down,
  InvalidMimeType: media,
  InvalidSize: media,
  PayloadTooLarge: media,
  InvalidRequest: content,
  InvalidSwap: down,
  // Of the video service (lexicons app.bsky.video.*, 2026-08-20).
  DailyLimitExceeded: limited,
  ServiceOverloaded: down,
  TooManyOpenUploads: down,
  UploadForbidden: forbidden,
  unconfirmed_email: forbidden,
  VideoTooLarge: media,
  VideoTooLong: media,
  BadAspectRatio: media,
  UnsupportedContentType: media,
};

const byStatus = (status: number): Meaning => {
  if (status === 429) return limited;
  if (status === 401) return lapsed;
  if (status >= 500) return down;
  return content;
};

const failure = (meaning: Meaning, code: string | null, message: string | null): Failure => ({
  ...meaning,
  message: failureCodes[meaning.code],
  platformCode: code,
  platformMessage: message,
  mediaId: null,
});

const meaningOf = ({ status, error }: Refused): Meaning =>
  (Object.hasOwn(meanings, error) ? meanings[error] : undefined) ?? byStatus(status);

/** The token has ended, which a server says before it does anything; that of a consent in the words of OAuth. */
export const hasEnded = (result: XrpcResult): boolean =>
  result.kind === 'refused' &&
  (result.error === 'ExpiredToken' || (result.status === 401 && result.error === 'invalid_token'));

export const failureOf = (refused: Refused): Failure =>
  failure(meaningOf(refused), refused.error || String(refused.status), refused.message || null);

export const mediaFailure = (mediaId: string | null, said: string): Failure => ({
  ...failure(down, null, said),
  mediaId,
});
/** The service cannot make the video ready. */
export const videoRefused = (mediaId: string, said: string | null): Failure => ({
  ...failure(media, 'JOB_STATE_FAILED', said),
  mediaId,
});
export const stillProcessing = (mediaId: string): Failure => ({
  ...failure({ category: 'transient', code: 'processing_timeout', retryable: true, actor: 'platform' }, null, null),
  mediaId,
});
export const contentChanged = (): Failure =>
  failure({ category: 'invalid_content', code: 'content_changed', retryable: false, actor: 'user' }, null, null);
export const unknown = (said: string): Failure => failure(unknownOutcome, null, said);
export const notReached = (said: string): Failure => failure(down, null, said);
export const reauth = (said: string): Failure => failure(lapsed, null, said);

/** Where the server names no wait. */
const defaultWaitMs = 60_000;

/** The later of both headers; servers send seconds from now and seconds since the epoch. */
const retryAtOf = ({ error, headers }: Refused, now: number): string => {
  const after = Number(headers['retry-after'] ?? Number.NaN) * 1_000;
  const reset = Number(headers['ratelimit-reset'] ?? Number.NaN) * 1_000 - now;
  const waits = [after, reset].filter((one) => Number.isFinite(one) && one >= 0);
  if (waits.length === 0) return namedInstant(error === ofTheDay ? nextDay(now) : now + defaultWaitMs);
  return namedInstant(now + Math.max(...waits));
};

/** The video service counts videos and bytes by the day of UTC. */
const ofTheDay = 'DailyLimitExceeded';

/**
 * What a call that did not succeed means. Before the boundary everything that may pass is tried again; a write of which
 * nothing is known is unknown.
 */
export const outcomeOf = (result: Exclude<XrpcResult, { kind: 'ok' }>, isWrite: boolean, now: number): Failed => {
  if (result.kind === 'unsent') return { kind: 'deferred', failure: notReached(result.reason) };
  if (result.kind === 'silent') {
    return isWrite
      ? { kind: 'unknown', failure: unknown(result.reason) }
      : { kind: 'deferred', failure: notReached(result.reason) };
  }
  const said = failureOf(result);
  if (said.category === 'rate_limited') {
    return { kind: 'rate_limited', retryAt: retryAtOf(result, now), failure: said };
  }
  if (said.category === 'platform_down') {
    // A server that fails may have written first; a missing blob is refused before anything is written.
    const mayBeWritten = isWrite && result.status >= 500;
    return mayBeWritten
      ? { kind: 'unknown', failure: unknown(`${result.status} ${result.error}`) }
      : { kind: 'deferred', failure: said };
  }
  return { kind: 'failed', failure: said };
};

/**
 * What an answer of the video service means. It judges a file by the names of its lexicons alone; another refusal, and one of
 * the token that the account's server gave us for it, says nothing of the file or of the account.
 */
export const outcomeOfVideo = (result: Exclude<XrpcResult, { kind: 'ok' }>, mediaId: string, now: number): Failed => {
  const outcome = outcomeOf(result, false, now);
  const { category, platformCode, platformMessage } = outcome.failure;
  if (outcome.kind === 'failed' && ['invalid_content', 'reauth_required'].includes(category)) {
    const said = [platformCode, platformMessage].filter((one) => one !== null).join(': ');
    return { kind: 'deferred', failure: mediaFailure(mediaId, said) };
  }
  return { ...outcome, failure: { ...outcome.failure, mediaId } };
};

/** What the service says of an account that may not upload now. `error` may be one of its names, or none. */
export const uploadRefused = (error: string, message: string | null, mediaId: string, now: number): Failed => {
  const isKnown = Object.hasOwn(meanings, error);
  const refused = { status: 403, error: isKnown ? error : 'UploadForbidden', message: message ?? error };
  return outcomeOfVideo({ kind: 'refused', ...refused, data: null, headers: {} }, mediaId, now);
};
