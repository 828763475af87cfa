import type { Failure } from '#schemas/target.ts';
import {
  beforeBoundary,
  behindBoundary,
  type ErrorRow,
  type ErrorTables,
  failureOf as failureFor,
  judge,
  type NotOk,
  unknown,
} from '../kit/errors.ts';
import type { Failed, NotPublished } from '../shared/outcomes.ts';
import type { ApiResult, Refused } from './api.ts';

/** What each error of the Bot API means for a post. Its texts may change, so a fragment decides, in any case. */

const content = [
  /can't parse entities|(?:message text is empty|(?:caption|message|text) is too long|caption_too_long)/i,
  /message (?:to be replied|to reply|thread) not found/i,
];
const media = [
  /wrong file identifier|failed to get http url content|wrong type of the web page content|wrong remote file/i,
  /can't upload file by url|photo_invalid_dimensions|image_process_failed|photo_ext_invalid|video_file_invalid/i,
  /media_empty|media_grouped_invalid|file is too big|file must be non-empty|request entity too large/i,
];
/** The chat, or those who speak for it, shut the bot out. */
const shutOut = [
  /bot was kicked|bot is not a member|bot was blocked|user is deactivated|group chat was deleted/i,
  /chat not found|chat_id is empty|peer_id_invalid|channel_private|need administrator rights|not enough rights/i,
  /chat_admin_required|chat_write_forbidden|chat_send_|topic_closed/i,
];
const says = (means: ErrorRow['means'], fragments: readonly RegExp[]): readonly ErrorRow[] =>
  fragments.map((fragment) => ({ says: fragment, means }));

const deadToken = [401, 404] as const;

/** These codes say all of it, whatever the words; a token that is malformed is a path that the network does not know. */
const ofCode = (dead: ErrorRow['means']): readonly ErrorRow[] => [
  ...deadToken.map((status) => ({ status, means: dead })),
  { status: 429, means: 'limited' },
  { status: '5xx', means: 'down' },
];
const ofWords: readonly ErrorRow[] = [
  ...says('content', content),
  ...says('media', media),
  ...says('unpermitted', shutOut),
  { says: /group chat was upgraded/i, means: 'ours' },
  { status: 403, means: 'unpermitted' },
  { status: 413, means: 'media' },
  { status: 409, means: 'ours' },
  { status: 421, means: 'ours' },
];

const tablesOf = (errors: readonly ErrorRow[]): ErrorTables => ({ errors, words: ['description'], code: () => null });
const ofOwners = tablesOf([...ofCode('lapsed'), ...ofWords]);
/** The operator mends the token of the operator's bot. */
const ofOperator = tablesOf([...ofCode('ours'), ...ofWords]);

export const isDeadToken = (code: number): boolean => deadToken.some((one) => one === code);

const judged = ({ code: status, description, isOperators }: Refused) =>
  judge(isOperators === true ? ofOperator : ofOwners, { status, body: { description } });

export const failureOf = (refused: Refused): Failure => judged(refused).failure;
export const contentFailure = (said: string): Failure => failureFor('content', null, said);
export const oursToMend = (said: string): Failure => failureFor('ours', null, said);

/** Where the network names no wait. */
const defaultWaitMs = 60_000;

type Unsuccessful = Exclude<ApiResult, { readonly kind: 'ok' }>;

const answerOf = (result: Unsuccessful, now: number): NotOk => {
  if (result.kind !== 'refused') return result;
  const { code: status, description, retryAfter } = result;
  const named = now + (retryAfter === null ? defaultWaitMs : retryAfter * 1_000);
  return { kind: 'refused', status, headers: {}, body: { description }, ...judged(result), named };
};

/** What a read means that did not succeed: it changed nothing. */
export const readFailed = (result: Unsuccessful, now: number): Exclude<Failed, { readonly kind: 'unknown' }> =>
  beforeBoundary(answerOf(result, now), now);

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
  if (result.kind === 'refused' && result.code < 500 && isAlbum && mayBePartlyOut(result)) {
    const said = `a part of the album may be out: ${result.code} ${result.description}`;
    return { kind: 'unknown', failure: unknown(said) };
  }
  return behindBoundary(answerOf(result, now), now);
};

/** The token and the form of the request are judged before anything is sent. */
const mayBePartlyOut = ({ code, description, migrateTo }: Refused): boolean => {
  if (isDeadToken(code) || code === 413 || migrateTo !== null) return false;
  return !description.toLowerCase().includes("can't parse entities");
};
