import { type FailureCode, failureCodes } from '#domain/platforms/index.ts';
import type { Failure } from '#schemas/target.ts';
import { type Failed, type NotPublished, namedInstant, nothingSent } from '../shared/outcomes.ts';
import type { ApiResult, Refused } from './api.ts';

/** What each error of the Bot API means for a post. Its texts may change, so a fragment decides, in any case. */

type Meaning = Pick<Failure, 'category' | 'retryable' | 'actor'> & { readonly code: FailureCode };

const lapsed: Meaning = { category: 'reauth_required', code: 'reauth_required', retryable: true, actor: 'user' };
const shutOut: Meaning = { category: 'permission', code: 'reauth_required', retryable: true, actor: 'user' };
const content: Meaning = { category: 'invalid_content', code: 'content_rejected', retryable: false, actor: 'user' };
const media: Meaning = { category: 'media', code: 'content_rejected', retryable: false, actor: 'user' };
const limited: Meaning = {
  category: 'rate_limited',
  code: 'network_rate_limited',
  retryable: true,
  actor: 'platform',
};
const down: Meaning = { category: 'platform_down', code: 'network_down', retryable: true, actor: 'platform' };
const ours: Meaning = { category: 'transient', code: 'network_down', retryable: true, actor: 'service' };
const unknownOutcome: Meaning = { category: 'unknown', code: 'outcome_unknown', retryable: false, actor: 'platform' };

/** By a fragment of the description, in lower case; the first that fits. */
export const meanings: readonly (readonly [fragment: string, meaning: Meaning])[] = [
  ["can't parse entities", content],
  ['message text is empty', content],
  ['caption is too long', content],
  ['caption_too_long', content],
  ['message is too long', content],
  ['text is too long', content],
  ['message to be replied not found', content],
  ['message to reply not found', content],
  ['message thread not found', content],
  ['wrong file identifier', media],
  ['failed to get http url content', media],
  ['wrong type of the web page content', media],
  ['wrong remote file', media],
  ["can't upload file by url", media],
  ['photo_invalid_dimensions', media],
  ['image_process_failed', media],
  ['photo_ext_invalid', media],
  ['video_file_invalid', media],
  ['media_empty', media],
  ['media_grouped_invalid', media],
  ['file is too big', media],
  ['file must be non-empty', media],
  ['request entity too large', media],
  ['bot was kicked', shutOut],
  ['bot is not a member', shutOut],
  ['bot was blocked', shutOut],
  ['user is deactivated', shutOut],
  ['group chat was deleted', shutOut],
  ['chat not found', shutOut],
  ['chat_id is empty', shutOut],
  ['peer_id_invalid', shutOut],
  ['channel_private', shutOut],
  ['need administrator rights', shutOut],
  ['not enough rights', shutOut],
  ['chat_admin_required', shutOut],
  ['chat_write_forbidden', shutOut],
  ['chat_send_', shutOut],
  ['topic_closed', shutOut],
  ['group chat was upgraded', ours],
];

/** A token that is malformed is a path that the network does not know. */
export const isDeadToken = (code: number): boolean => code === 401 || code === 404;

const byCode = (code: number): Meaning => {
  if (isDeadToken(code)) return lapsed;
  if (code === 403) return shutOut;
  if (code === 413) return media;
  if (code === 429) return limited;
  if (code === 409 || code === 421) return ours;
  if (code >= 500) return down;
  return content;
};

const meaningOf = ({ code, description, isOperators }: Refused): Meaning => {
  if (isOperators && isDeadToken(code)) return ours;
  // These codes say all of it, whatever the words.
  if (isDeadToken(code) || code === 429 || code >= 500) return byCode(code);
  const said = description.toLowerCase();
  return meanings.find(([fragment]) => said.includes(fragment))?.[1] ?? byCode(code);
};

const failure = (meaning: Meaning, code: string | null, said: string | null): Failure => ({
  ...meaning,
  message: failureCodes[meaning.code],
  platformCode: code,
  platformMessage: said,
  mediaId: null,
});

export const failureOf = (refused: Refused): Failure =>
  failure(meaningOf(refused), String(refused.code), refused.description || null);
export const contentFailure = (said: string): Failure => failure(content, null, said);
export const mediaFailure = (mediaId: string, said: string): Failure => ({ ...failure(media, null, said), mediaId });
export const unknown = (said: string): Failure => failure(unknownOutcome, null, said);
export const notReached = (said: string): Failure => failure(down, null, said);
export const reauth = (said: string): Failure => failure(lapsed, null, said);
export const oursToMend = (said: string): Failure => failure(ours, null, said);

/** Where the network names no wait. */
const defaultWaitMs = 60_000;

export const retryAtOf = ({ retryAfter }: Refused, now: number): string =>
  namedInstant(now + (retryAfter === null ? defaultWaitMs : retryAfter * 1_000));

type Unsuccessful = Exclude<ApiResult, { readonly kind: 'ok' }>;
/** What a read means that did not succeed: it changed nothing. */
export const readFailed = (result: Unsuccessful, now: number): Exclude<Failed, { readonly kind: 'unknown' }> => {
  if (result.kind !== 'refused') return { kind: 'deferred', failure: notReached(result.reason) };
  const failure = failureOf(result);
  if (failure.category === 'rate_limited') return { kind: 'rate_limited', retryAt: retryAtOf(result, now), failure };
  if (failure.category === 'platform_down' || failure.category === 'transient') return { kind: 'deferred', failure };
  return { kind: 'failed', failure };
};

/** Nothing was called. What the operator can mend passes; an account that nobody may post for does not. */
export const withoutChat = (failure: Failure): Extract<Failed, { readonly kind: 'failed' | 'deferred' }> => ({
  kind: failure.actor === 'service' ? 'deferred' : 'failed',
  failure,
});

/**
 * What a send means that did not succeed. A refusal below 500 made nothing, except of an album: the server sends its
 * messages one by one, and an error of one may follow others that are out.
 */
export const sendFailed = (result: Unsuccessful, isAlbum: boolean, now: number): NotPublished => {
  if (result.kind === 'silent') return { kind: 'unknown', failure: unknown(result.reason) };
  if (result.kind === 'refused') {
    const said = `${result.code} ${result.description}`;
    if (result.code >= 500) return { kind: 'unknown', failure: unknown(said) };
    if (isAlbum && mayBePartlyOut(result)) {
      return { kind: 'unknown', failure: unknown(`a part of the album may be out: ${said}`) };
    }
  }
  return nothingSent(readFailed(result, now));
};

/** The token and the form of the request are judged before anything is sent. */
const mayBePartlyOut = ({ code, description, migrateTo }: Refused): boolean => {
  if (isDeadToken(code) || code === 413 || migrateTo !== null) return false;
  return !description.toLowerCase().includes("can't parse entities");
};
