import type { Failure } from '#schemas/target.ts';
import {
  beforeBoundary,
  behindComment,
  type ErrorRow,
  type ErrorTables,
  failureOf as failureFor,
  judge,
  type Meaning,
  type NotOk,
  notReached,
} from '../kit/errors.ts';
import { textIn } from '../shared/members.ts';
import { type Failed, nextDay } from '../shared/outcomes.ts';
import type { Refused, XrpcResult } from './xrpc.ts';

export { notReached, reauth, unknown } from '../kit/errors.ts';

/** What each error of a server means for a post. Facts: lexicons, `@atproto/pds`, `@atproto/xrpc-server`. */

/** By the name of the error; the status decides about all others. */
const names = {
  lapsed: [
    ...['ExpiredToken', 'InvalidToken', 'invalid_token', 'invalid_dpop_proof', 'AuthMissing', 'AuthenticationRequired'],
    ...['AuthFactorTokenRequired', 'AccountTakedown', 'AccountDeactivated', 'AccountNotFound', 'RepoNotFound'],
  ],
  unpermitted: ['insufficient_scope', 'ScopeMissingError'],
  // The last ones of each are of the video service (lexicons app.bsky.video.*, 2026-08-20).
  forbidden: ['UploadForbidden', 'unconfirmed_email'],
  limited: ['RateLimitExceeded', 'DailyLimitExceeded'],
  // Said before a server does anything: nothing is out.
  later: ['use_dpop_nonce', 'BlobNotFound', 'InvalidSwap'],
  down: ['ServiceOverloaded', 'TooManyOpenUploads'],
  media: [
    ...['InvalidMimeType', 'InvalidSize', 'PayloadTooLarge'],
    ...['VideoTooLarge', 'VideoTooLong', 'BadAspectRatio', 'UnsupportedContentType'],
  ],
  content: ['InvalidRequest'],
} as const satisfies Partial<Record<Meaning, readonly string[]>>;

const errors = Object.entries(names).map(
  ([means, list]): ErrorRow => ({ where: { error: list }, means: means as Meaning }),
);

const tables: ErrorTables = { errors, words: ['message'], code: (body) => textIn(body, 'error') || null };

const isKnown = (error: string): boolean => Object.values(names).some((list) => list.some((one) => one === error));

const answerOf = (result: Exclude<XrpcResult, { kind: 'ok' }>, now: number): NotOk => {
  if (result.kind !== 'refused') return result;
  const { status, headers, error, message } = result;
  const said = { status, body: { error, message } };
  return { ...{ kind: 'refused', headers, ...said, ...judge(tables, said) }, named: retryAtOf(result, now) };
};

/** The token has ended, which a server says before it does anything; that of a consent in the words of OAuth. */
export const hasEnded = (result: XrpcResult): boolean =>
  result.kind === 'refused' &&
  (result.error === 'ExpiredToken' || (result.status === 401 && result.error === 'invalid_token'));

export const failureOf = ({ status, error, message }: Refused): Failure =>
  judge(tables, { status, body: { error, message } }).failure;

export const mediaFailure = (mediaId: string | null, said: string): Failure => ({ ...notReached(said), mediaId });
/** The service cannot make the video ready. */
export const videoRefused = (mediaId: string, said: string | null): Failure =>
  failureFor('media', 'JOB_STATE_FAILED', said, mediaId);
export const stillProcessing = (mediaId: string): Failure => failureFor('processing', null, null, mediaId);
export const contentChanged = (): Failure => failureFor('changed', null, null);

/** Where the server names no wait. */
const defaultWaitMs = 60_000;

/** The later of both headers; servers send seconds from now and seconds since the epoch. */
const retryAtOf = ({ error, headers }: Refused, now: number): number => {
  const after = Number(headers['retry-after'] ?? Number.NaN) * 1_000;
  const reset = Number(headers['ratelimit-reset'] ?? Number.NaN) * 1_000 - now;
  const waits = [after, reset].filter((one) => Number.isFinite(one) && one >= 0);
  if (waits.length === 0) return error === ofTheDay ? nextDay(now) : now + defaultWaitMs;
  return now + Math.max(...waits);
};

/** The video service counts videos and bytes by the day of UTC. */
const ofTheDay = 'DailyLimitExceeded';

/**
 * What a call that did not succeed means. Before the boundary everything that may pass is tried again; a write of which
 * nothing is known is unknown.
 */
export const outcomeOf = (result: Exclude<XrpcResult, { kind: 'ok' }>, isWrite: boolean, now: number): Failed =>
  isWrite ? behindComment(answerOf(result, now), now) : beforeBoundary(answerOf(result, now), now);

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
  const refused = { status: 403, error: isKnown(error) ? error : 'UploadForbidden', message: message ?? error };
  return outcomeOfVideo({ kind: 'refused', ...refused, data: null, headers: {} }, mediaId, now);
};
