import type { AppRefusal } from '#contracts/ports/app-limits.ts';
import type { AfterStepOutcome, Json, Undecided } from '#contracts/ports/platform.ts';
import { type FailureCode, failureCodes, nextDayIn, rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import type { Failure } from '#schemas/target.ts';
import { type Members, membersOf } from '../shared/members.ts';
import { type Failed, type NotPublished, namedInstant, nothingSent } from '../shared/outcomes.ts';
import type { Headers } from './limits.ts';

/** What a network's errors mean: rows of a table, one list of meanings, and what a meaning makes of a call. */

type Meant = Pick<Failure, 'category' | 'retryable' | 'actor'> & { readonly code: FailureCode };

const ofUser = { retryable: false, actor: 'user' } as const;
const ofNetwork = { retryable: true, actor: 'platform' } as const;
const ofService = { retryable: true, actor: 'service' } as const;

const meanings = {
  /** Only a new consent helps. */
  lapsed: { category: 'reauth_required', code: 'reauth_required', retryable: true, actor: 'user' },
  /** The owner allowed less than the call needs, or shut us out; a new consent mends it. */
  unpermitted: { category: 'permission', code: 'reauth_required', retryable: true, actor: 'user' },
  /** What the account's owner can change at the network. */
  forbidden: { category: 'permission', code: 'account_not_permitted', retryable: true, actor: 'user' },
  permission: { category: 'permission', code: 'content_rejected', ...ofUser },
  content: { category: 'invalid_content', code: 'content_rejected', ...ofUser },
  media: { category: 'media', code: 'content_rejected', ...ofUser },
  duplicate: { category: 'duplicate', code: 'duplicate_content', ...ofUser },
  /** The network does not have what the call is about. */
  gone: { category: 'invalid_content', code: 'content_rejected', ...ofUser },
  limited: { category: 'rate_limited', code: 'network_rate_limited', ...ofNetwork },
  down: { category: 'platform_down', code: 'network_down', ...ofNetwork },
  /** The network is not ready for the call: a file that it still reads. */
  later: { category: 'transient', code: 'network_down', ...ofNetwork },
  processing: { category: 'transient', code: 'processing_timeout', ...ofNetwork },
  /** The operator can mend it: the post waits. */
  ours: { category: 'transient', code: 'network_down', ...ofService },
  /** The operator must pay: the app rests as a whole. */
  unpaid: { category: 'permission', code: 'network_rate_limited', ...ofService },
  /** The operator must set a newer version of the API: the network rests for this one, and no post fails of it. */
  sunset: { category: 'permission', code: 'api_version_ended', ...ofService },
  /** Of a step behind a publication, whose post stays: the owner did not allow it, or the network does not. */
  noComment: { category: 'permission', code: 'comment_not_permitted', ...ofUser },
  narrowed: { category: 'permission', code: 'visibility_reduced', ...ofUser },
  noCover: { category: 'permission', code: 'cover_not_permitted', ...ofUser },
  /** Of the network’s own scheduler. */
  offWindow: { category: 'invalid_content', code: 'outside_native_window', ...ofNetwork },
  undoTooLate: { category: 'permission', code: 'undo_too_late', retryable: false, actor: 'platform' },
  unscheduled: { category: 'unknown', code: 'native_publish_failed', ...ofNetwork },
  changed: { category: 'invalid_content', code: 'content_changed', ...ofUser },
  unknown: { category: 'unknown', code: 'outcome_unknown', retryable: false, actor: 'platform' },
} as const satisfies Readonly<Record<string, Meant>>;

export type Meaning = keyof typeof meanings;

/** @param mediaId the file that it is about */
export const failureOf = (
  meaning: Meaning,
  code: string | null,
  said: string | null,
  mediaId: string | null = null,
): Failure => ({
  ...meanings[meaning],
  message: failureCodes[meanings[meaning].code],
  platformCode: code?.slice(0, 200) ?? null,
  platformMessage: said?.slice(0, 2_000) ?? null,
  mediaId,
});

export const unknown = (said: string): Failure => failureOf('unknown', null, said);
export const notReached = (said: string): Failure => failureOf('down', null, said);
export const reauth = (said: string): Failure => failureOf('lapsed', null, said);

/** An error fits where all that the row names fits. The first row that fits decides. */
export interface ErrorRow {
  readonly status?: number | '5xx';
  /** By the path of a member, through lists too: `{'error.code': [190, 102], type: /\/suspended$/}`. */
  readonly where?: Readonly<Record<string, readonly (string | number)[] | RegExp>>;
  /** In the words of the answer. */
  readonly says?: RegExp;
  readonly means: Meaning;
  /** The refusal is about the operator's app: it rests where it may pass, and else the operator must act. */
  readonly ofApp?: true;
  /** What the app may do of that kind is used up: the network knows it better than our count. */
  readonly exhausts?: true;
  /** The network says so before it does anything: a new token makes the call good. */
  readonly renews?: true;
  /** The network was seen to say so after it had made the post. */
  readonly mayBeOut?: true;
  /** Milliseconds to wait where the network names none, or until the next day of a zone. */
  readonly wait?: number | { readonly nextDayIn: string };
}

/** Where the answers of a network have their words. */
export interface ErrorTables {
  readonly errors: readonly ErrorRow[];
  /** Paths of the members that hold words, in the order of the sentence; those without are left out. */
  readonly words: readonly string[];
  /** The network's own name of the error; null: its status. */
  code(body: Members | null): string | null;
}

/** A refusal of the network. */
export interface RefusedAnswer {
  readonly kind: 'refused';
  readonly status: number;
  readonly headers: Headers;
  /** Null: the body is no JSON object. */
  readonly body: Members | null;
  readonly row: ErrorRow;
  readonly failure: Failure;
  /** Milliseconds since the epoch until which the network refuses, as it names it; else as its table does. */
  readonly named: number;
}

export interface OkAnswer {
  readonly kind: 'ok';
  readonly status: number;
  readonly headers: Headers;
  /** Empty where there is none. */
  readonly body: Members;
}

export type NotOk =
  | RefusedAnswer
  /** Nothing of the call reached the network. */
  | { readonly kind: 'unsent'; readonly reason: string }
  /** Something may have reached it, and no whole answer came. */
  | { readonly kind: 'silent'; readonly reason: string }
  /** Only a new consent helps. */
  | { readonly kind: 'lapsed'; readonly reason: string }
  /** The network did nothing: the token had ended and could not be refreshed in time. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** There was no call: the network refuses the whole app. */
  | { readonly kind: 'resting'; readonly rest: AppRefusal }
  /** There was no call: what the app may ask for is used up. `until`: ISO 8601; null: it could not be counted. */
  | { readonly kind: 'spent'; readonly reason: string; readonly until: string | null };

export type NetworkAnswer = OkAnswer | NotOk;

/** All members that a path leads to. */
export const membersAt = (body: Json | undefined, path: string): readonly Json[] =>
  path.split('.').reduce<readonly Json[]>(
    (found, name) =>
      found.flatMap((one): readonly Json[] => {
        const member = membersOf(one)?.[name];
        if (member === undefined || member === null) return [];
        return Array.isArray(member) ? (member as readonly Json[]) : [member];
      }),
    body === undefined || body === null ? [] : [body],
  );

const wordsOf = ({ words }: ErrorTables, body: Members | null): string => {
  const found = words.map((path) => membersAt(body, path)[0]);
  const texts = found.filter((one): one is string => typeof one === 'string' && one !== '');
  return [...new Set(texts)].join(': ').slice(0, 2_000);
};

const fitsStatus = (row: ErrorRow, status: number): boolean =>
  row.status === undefined || (row.status === '5xx' ? status >= 500 : row.status === status);

const fits = (row: ErrorRow, status: number, body: Members | null, said: string): boolean =>
  fitsStatus(row, status) &&
  (row.says === undefined || row.says.test(said)) &&
  Object.entries(row.where ?? {}).every(([path, wanted]) =>
    membersAt(body, path).some((one) =>
      wanted instanceof RegExp ? wanted.test(String(one)) : wanted.some((value) => value === one),
    ),
  );

/** Where no row fits. A good status says that something was done, whatever its words mean. */
const byStatus = (status: number): ErrorRow => {
  if (status < 300) return { means: 'later', mayBeOut: true };
  if (status >= 500 || status === 408) return { means: 'down' };
  if (status === 429) return { means: 'limited' };
  return { means: status === 401 ? 'lapsed' : 'content' };
};

export const judge = (
  tables: ErrorTables,
  { status, body }: Pick<RefusedAnswer, 'status' | 'body'>,
): Pick<RefusedAnswer, 'row' | 'failure'> => {
  const said = wordsOf(tables, body);
  const row = tables.errors.find((one) => fits(one, status, body, said)) ?? byStatus(status);
  const failure = failureOf(row.means, tables.code(body) ?? String(status), said || null);
  return { row, failure: row.ofApp === true ? { ...failure, actor: 'service' } : failure };
};

const unpaidMs = 900_000;
const usualMs = 900_000;
const hourMs = 3_600_000;

/** Until when a refused call is not worth another try, where the network does not say. */
export const usualUntil = ({ means, wait, ofApp }: ErrorRow, now: number): number => {
  if (typeof wait === 'number') return now + wait;
  if (wait !== undefined) return nextDayIn(wait.nextDayIn, now);
  if (means === 'unpaid' || means === 'sunset') return now + unpaidMs;
  return now + (ofApp === true ? hourMs : usualMs);
};

/** Until a refresh is tried again, and until reads are counted again. */
const soonMs = 30_000;

const limitedUntil = (until: number, failure: Failure): Extract<Failed, { readonly kind: 'rate_limited' }> => ({
  kind: 'rate_limited',
  retryAt: namedInstant(until),
  failure,
});

/** What a call means that can make nothing visible: all that may pass is tried again. */
export const beforeBoundary = (answer: NotOk, now: number): Exclude<Failed, { readonly kind: 'unknown' }> => {
  switch (answer.kind) {
    case 'lapsed':
      return { kind: 'failed', failure: reauth(answer.reason) };
    case 'resting':
      return limitedUntil(answer.rest.until, answer.rest.failure);
    case 'spent': {
      const failure = { ...failureOf('limited', null, answer.reason), actor: 'service' } as const;
      return limitedUntil(answer.until === null ? now + soonMs : Date.parse(answer.until), failure);
    }
    case 'unavailable':
    case 'unsent':
    case 'silent':
      return { kind: 'deferred', failure: notReached(answer.reason) };
    case 'refused': {
      const { row, failure, named } = answer;
      if (['limited', 'unpaid', 'sunset'].includes(row.means)) return limitedUntil(named, failure);
      const passes = failure.category === 'platform_down' || failure.category === 'transient';
      return { kind: passes ? 'deferred' : 'failed', failure };
    }
  }
};

/** Of a question: a network that gives no answer does not say what it has. */
export const undecidedBy = (answer: NotOk, now: number): Undecided => ({
  kind: 'undecided',
  failure: beforeBoundary(answer, now).failure,
});

/** Said by what stands before an API and lets a call in or not: its own words are no JSON. */
const turnedAway = [401, 413, 426, 429];

/** A network refuses in JSON. Other words are of a server in between, which may have lost the answer of the network. */
const mayBeOut = ({ status, body, row }: RefusedAnswer): boolean =>
  status >= 500 || row.means === 'down' || row.mayBeOut === true || (body === null && !turnedAway.includes(status));

/** What the boundary call means: a server that fails may have made the post first; one that refuses has made nothing. */
export const behindBoundary = (answer: NotOk, now: number): NotPublished => {
  if (answer.kind === 'silent') return { kind: 'unknown', failure: unknown(answer.reason) };
  // The token had ended: the network made nothing, so the post need not be looked for.
  if (answer.kind === 'unavailable') return limitedUntil(now + soonMs, notReached(answer.reason));
  if (answer.kind === 'refused' && mayBeOut(answer)) {
    const { status, failure: refusal, row, named } = answer;
    const failure = unknown(`${status} ${refusal.platformMessage ?? ''}`.trim());
    // Where the post turns out not to be there, the limit still stands.
    return { kind: 'unknown', failure, ...(row.means === 'limited' ? { retryAt: namedInstant(named) } : {}) };
  }
  return nothingSent(beforeBoundary(answer, now));
};

const tooLate = 'the deadline passed before the call was made';

/** The time of a comment was over before its call: nothing was sent, and the next try makes it. */
export const commentTooLate = { kind: 'deferred', failure: failureOf('later', null, tooLate) } as const;

/** The same of a post, behind its boundary: whoever recorded that makes its one call, and makes none now. */
export const publishTooLate = { kind: 'nothing_sent', failure: failureOf('later', null, tooLate) } as const;

/** The network took a post or a comment, and its answer does not say which it is. */
export const noIdOfPost = { kind: 'unknown', failure: unknown('the answer has no id of the post') } as const;

/** What is to be removed can be no post of the network. */
export const isNoPost = {
  kind: 'not_removed',
  failure: failureOf('content', null, 'this is no id of a post'),
} as const;

export const namesNobody = { kind: 'silent', reason: 'the answer does not say whose account it is' } as const;

/** What a call of a comment means, which has no `nothing_sent`. */
export const behindComment = (answer: NotOk, now: number): Failed => {
  const outcome = behindBoundary(answer, now);
  if (outcome.kind === 'unknown') return { kind: 'unknown', failure: outcome.failure };
  return outcome.kind === 'nothing_sent' ? { ...outcome, kind: 'deferred' } : outcome;
};

/** A network's own scheduler takes no post of this time: nothing was made. */
export const offWindow = (code: string, said: string) =>
  ({ kind: 'outside_window', failure: failureOf('offWindow', code, said) }) as const;

/** Why it takes none, by the rules of the network; null: it takes one. */
export const refusedTime = (platform: Platform, code: string, dueAt: string, now: number) => {
  const { minMs = 0, maxMs = 0 } = rulesOf(platform).nativeWindow ?? {};
  const ahead = Date.parse(dueAt) - now;
  return ahead >= minMs && ahead <= maxMs ? null : offWindow(code, 'the time is not within the window of the network');
};

/** What a call of a cover means, which may be made again. A refusal for want of a permission is the network's last word. */
export const behindCover = (answer: NotOk, now: number): AfterStepOutcome => {
  const outcome = beforeBoundary(answer, now);
  const { platformCode, platformMessage, category } = outcome.failure;
  return outcome.kind === 'failed' && category === 'permission'
    ? { ...outcome, failure: failureOf('noCover', platformCode, platformMessage) }
    : outcome;
};
