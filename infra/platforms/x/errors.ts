import { type FailureCode, failureCodes } from '#domain/platforms/index.ts';
import type { Failure } from '#schemas/target.ts';
import { listIn, type Members, numberIn, textIn } from '../shared/members.ts';

/**
 * What each error of X means. Facts: docs.x.com, "Response codes and errors"; OpenAPI 2.167. X classifies by status, by
 * the end of `type`, by the code of the older form, and otherwise only by its words.
 */

export interface Refused {
  readonly kind: 'refused';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Null: the body is no JSON object. */
  readonly body: Members | null;
}

export interface Meaning extends Pick<Failure, 'category' | 'retryable' | 'actor'> {
  readonly code: FailureCode;
  /** `app`: the refusal is about the operator's app, so it rests as a whole. */
  readonly scope: 'account' | 'app';
}

interface Row {
  readonly status?: number;
  /** End of the member `type`. */
  readonly type?: string;
  /** Of the older form `errors[].code`. */
  readonly legacy?: readonly number[];
  /** Part of the words, in lower case. */
  readonly says?: string;
  readonly means: Meaning;
}

const account = { scope: 'account' } as const;
const user = { ...account, retryable: false, actor: 'user' } as const;
const lapsed: Meaning = {
  ...{ ...account, category: 'reauth_required', code: 'reauth_required' },
  ...{ retryable: true, actor: 'user' },
};
const content: Meaning = { ...user, category: 'invalid_content', code: 'content_rejected' };
const media: Meaning = { ...user, category: 'media', code: 'content_rejected' };
const permission: Meaning = { ...user, category: 'permission', code: 'content_rejected' };
const duplicate: Meaning = { ...user, category: 'duplicate', code: 'duplicate_content' };
const ofApp: Meaning = { ...permission, actor: 'service' };
const down: Meaning = {
  ...{ ...account, category: 'platform_down', code: 'network_down' },
  ...{ retryable: true, actor: 'platform' },
};
const limited: Meaning = { ...down, category: 'rate_limited', code: 'network_rate_limited' };
const capped: Meaning = { ...limited, scope: 'app', actor: 'service' };
const unpaid: Meaning = { ...capped, category: 'permission' };

/** The first row that fits decides. */
export const table: readonly Row[] = [
  { status: 402, means: unpaid },
  { type: '/problems/credits-depleted', means: unpaid },
  { type: '/problems/credits', means: unpaid },
  { type: '/problems/usage-capped', means: capped },
  { status: 429, means: limited },
  { type: '/problems/rate-limit-exceeded', means: limited },
  { legacy: [88], means: limited },
  { status: 401, means: lapsed },
  { type: '/problems/unsupported-authentication', means: lapsed },
  { type: '/problems/user-suspended', means: lapsed },
  { legacy: [64, 89, 326], means: lapsed },
  { says: 'account is temporarily locked', means: lapsed },
  { legacy: [187], means: duplicate },
  { says: 'duplicate content', means: duplicate },
  { type: '/problems/client-forbidden', means: ofApp },
  { type: '/problems/oauth1-permissions', means: ofApp },
  { says: 'not permitted to access this feature', means: ofApp },
  { legacy: [433], means: permission },
  { legacy: [226], means: permission },
  { says: 'reply to this conversation', means: permission },
  { says: 'not permitted to quote', means: permission },
  { legacy: [324, 325], means: media },
  { says: 'longer than 2 minutes', means: media },
  { says: 'media id', means: media },
  { status: 413, means: media },
  { legacy: [186, 385], means: content },
  { type: '/problems/invalid-request', means: content },
  { type: '/problems/resource-not-found', means: content },
  { status: 400, means: content },
  { status: 404, means: content },
  // "You are not permitted to perform this action." covers both; the gate has measured the text before.
  { status: 403, means: permission },
];

const words = ({ body }: Pick<Refused, 'body'>): string => {
  const [first] = listIn(body, 'errors');
  const all = [textIn(body, 'detail'), textIn(first, 'message'), textIn(body, 'title')];
  return [...new Set(all.filter((one) => one !== null && one !== ''))].join(': ').slice(0, 2_000);
};

const typeOf = ({ body }: Refused): string => textIn(body, 'type') ?? '';

const codesOf = ({ body }: Refused): readonly number[] =>
  listIn(body, 'errors').flatMap((one) => numberIn(one, 'code') ?? []);

const fits = (row: Row, refused: Refused): boolean =>
  (row.status === undefined || row.status === refused.status) &&
  (row.type === undefined || typeOf(refused).endsWith(row.type)) &&
  (row.legacy === undefined || codesOf(refused).some((code) => row.legacy?.includes(code))) &&
  (row.says === undefined || words(refused).toLowerCase().includes(row.says));

export const meaningOf = (refused: Refused): Meaning =>
  refused.status >= 500 ? down : (table.find((row) => fits(row, refused))?.means ?? content);

export const failure = (
  { category, code, retryable, actor }: Omit<Meaning, 'scope'>,
  platformCode: string | null,
  platformMessage: string | null,
): Failure => ({
  ...{ category, code, retryable, actor, message: failureCodes[code], mediaId: null },
  ...{ platformCode: platformCode?.slice(0, 200) ?? null, platformMessage: platformMessage?.slice(0, 2_000) ?? null },
});

/** The end of `type`, else the older code, else the status. */
const codeOf = (refused: Refused): string => {
  const [code] = codesOf(refused);
  const type = typeOf(refused).split('/').at(-1) ?? '';
  return type !== '' && type !== 'about:blank' ? type : String(code ?? refused.status);
};

export const failureOf = (refused: Refused): Failure =>
  failure(meaningOf(refused), codeOf(refused), words(refused) || null);

export const unknown = (said: string): Failure =>
  failure({ category: 'unknown', code: 'outcome_unknown', retryable: false, actor: 'platform' }, null, said);
export const notReached = (said: string): Failure => failure(down, null, said);
export const reauth = (said: string): Failure => failure(lapsed, null, said);
export const invalid = (said: string): Failure => failure(content, null, said);
export const badMedia = (mediaId: string, code: string | null, said: string): Failure => ({
  ...failure(media, code, said),
  mediaId,
});
export const processing = (mediaId: string): Failure => ({
  ...failure({ ...down, category: 'transient', code: 'processing_timeout' }, null, null),
  mediaId,
});
