import type { ApiVersion } from '#contracts/ports/api-version.ts';
import type { CommentOutcome } from '#contracts/ports/platform.ts';
import {
  behindComment,
  type ErrorRow,
  type ErrorTables,
  failureOf,
  membersAt,
  type NetworkAnswer,
  noIdOfPost,
} from '../kit/errors.ts';
import type { UsageHeaders } from '../kit/limits.ts';
import type { SaidError } from '../kit/oauth.ts';
import type { NetworkRequest } from '../kit/tables.ts';
import { type Members, membersOf, textIn } from '../shared/members.ts';

/** What the APIs of Facebook, Instagram and Threads answer alike: errors, limits, versions. */

export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

/** A path of the API. */
export const at = (path: string): string => `{api}/{version}/${path}`;

/** A call that reads. */
export const reading = (path: string, query: Readonly<Record<string, string>>) =>
  ({ method: 'GET', path: at(path), query }) as const;

/** The network does not have it, or does not show it to us. */
export const isGone = (answer: NetworkAnswer): boolean => answer.kind === 'refused' && answer.row.means === 'gone';

/** Of a permission that owners may leave out. */
export const noComment = (platformCode: string | null, said: string | null): CommentOutcome => ({
  kind: 'failed',
  failure: failureOf('noComment', platformCode, said),
});

/**
 * What a call of a comment means. A first comment is of a fresh post, which Meta may not know everywhere yet. It refused before
 * it did anything: the publisher tries again, and one that stays unknown ends as an issue.
 */
export const commentBy = (answer: NetworkAnswer, now: number): CommentOutcome => {
  if (answer.kind === 'ok') {
    const externalId = textIn(answer.body, 'id') ?? '';
    return externalId === '' ? noIdOfPost : { kind: 'posted', externalId };
  }
  if (answer.kind !== 'refused') return behindComment(answer, now);
  const { row, failure } = answer;
  const { category, platformCode, platformMessage } = failure;
  if (row.means === 'gone') {
    return { kind: 'deferred', failure: failureOf('later', platformCode, 'Meta does not know the post yet') };
  }
  return category === 'permission' ? noComment(platformCode, platformMessage) : behindComment(answer, now);
};

type Query = Readonly<Record<string, string>>;

/** "Paginated Results": a list, page by page, by the cursor that each names. */
export const pagesBy = (ask: (query: Query) => Promise<NetworkAnswer>, query: Query, perPage: number) => ({
  list: 'data',
  page: (after: string | null) => ask({ ...query, limit: String(perPage), ...(after === null ? {} : { after }) }),
  next: ({ paging }: Members): string | null =>
    textIn(paging, 'next') === null ? null : textIn(membersOf(paging)?.cursors, 'after'),
});

/** Of Unix, as the API takes times. */
export const secondOf = (at: number): string => String(Math.floor(at / 1_000));

/** When something happened, milliseconds since the epoch; NaN: the network does not say. It writes `+0000`. */
export const timeIn = (value: Members, name: string): number => Date.parse(textIn(value, name) ?? '');

export const code = (...codes: readonly number[]) => ({ where: { 'error.code': codes } });
export const subcode = (...codes: readonly number[]) => ({ where: { 'error.error_subcode': codes } });

/**
 * "Handling Errors", "Rate Limits" of the Graph API. The code counts, and not the status, which is 400 for nearly everything.
 * A network has its own rows, by subcodes, before these.
 */
export const metaErrors: readonly ErrorRow[] = [
  // Gone, closed to us, or so fresh that it is not known everywhere: who asks decides.
  { where: { 'error.code': [100], 'error.error_subcode': [33] }, means: 'gone' },
  // With every subcode: an app that was taken off, a checkpoint (459), a changed password, an end, a lost role.
  { ...code(190, 102), means: 'lapsed' },
  { ...code(4, 341), means: 'limited', ofApp: true },
  // Of a person, a page, a use case: "Business Use Case Rate Limits" has 80000 to 80014.
  { where: { 'error.code': /^(?:17|32|613|800\d\d)$/ }, means: 'limited' },
  { status: 429, means: 'limited' },
  { ...code(3), means: 'permission', ofApp: true },
  { where: { 'error.code': /^(?:10|2\d\d)$/ }, means: 'unpermitted' },
  { ...code(1, 2), means: 'down', mayBeOut: true },
  { where: { 'error.is_transient': /^true$/ }, means: 'down', mayBeOut: true },
  { status: '5xx', means: 'down' },
  // "Temporarily blocked for policies violations": the owner sees why at the network.
  { ...code(368), means: 'forbidden' },
  { ...code(506), means: 'duplicate' },
  { ...code(100), means: 'content' },
];

/** Where the answers have their words, and what names an error: `190/460`. */
export const metaWords: Omit<ErrorTables, 'errors'> = {
  words: ['error.message', 'error.error_user_msg', 'error_message'],
  code: (body) => {
    const { code: one, error_subcode: more } = membersOf(body?.error) ?? {};
    const names = [one, more].flatMap((name) => (typeof name === 'number' ? [String(name)] : []));
    return names.length === 0 ? (membersAt(body, 'error_type').map(String)[0] ?? null) : names.join('/');
  },
};

/** How the App Dashboard calls the addresses by which Meta tells us of owners. */
export const metaCalls = [
  { topic: 'deauthorize', name: 'Deauthorize callback URL' },
  { topic: 'delete', name: 'Data deletion request URL' },
] as const;

export const metaUsage: UsageHeaders = {
  app: 'x-app-usage',
  accounts: ['x-business-use-case-usage', 'x-page-usage'],
};

/** A token that Meta does not take any more, whatever it says of the reason. */
export const metaEnds: readonly SaidError[] = [400, 401].map((status) => ({ status, codes: [190, 102] }));

/** "Platform Changelog", November 2026: each version ends two years after the one behind it has come. */
const ends: Readonly<Record<string, string>> = {
  ...{ 'v20.0': '2026-09-24', 'v21.0': '2027-01-21', 'v22.0': '2027-05-20', 'v23.0': '2027-10-08' },
  ...{ 'v24.0': '2028-02-18', 'v25.0': '2028-07-29', 'v26.0': '2028-11-04' },
};

/** Meta answers a version that has ended by a newer one, in silence. */
export const graphVersion = (set: string | null): ApiVersion => ({
  version: `Graph API ${set ?? 'of nobody'}`,
  endsAt: ends[set ?? ''] ?? null,
  source:
    'developers.facebook.com, "Platform Changelog", November 2026: a version ends two years after the next one came',
});

/** By the parameter that asks for it. */
const closedParameters: Readonly<Record<string, string>> = {
  ...{ ids: 'a call with several ids', date_format: 'a format of dates', method: 'another method' },
  ...{ callback: 'JSONP', asyncbatch: 'an asynchronous batch' },
};

/** "Introducing Graph API v27.0": what no app made since 2026-11-04 may use, in any version. Null: the call uses none of it. */
export const closedToNewApps = ({ path, query = {}, fields = {} }: NetworkRequest): string | null => {
  const names = [...Object.keys(query), ...Object.keys(fields)];
  if (/[/?&]async_?batch/.test(path)) return 'an asynchronous batch';
  // Texts of posts may have any words.
  if (/\.as\(/.test(`${query.fields ?? ''} ${fields.fields ?? ''}`)) return 'an alias of a field';
  const name = names.find((one) => Object.hasOwn(closedParameters, one));
  const inPath = /[?&](ids|date_format|method|callback)=/.exec(path)?.[1];
  return closedParameters[name ?? inPath ?? ''] ?? null;
};

/** What the tables of each network of the Graph API have. */
export const graphTables = { version: graphVersion, usage: metaUsage, ...metaWords, closed: closedToNewApps };

/** Ids of posts, containers, files and accounts are numbers of up to 20 digits. */
export const isMediaId = (id: string): boolean => /^\d{1,20}$/.test(id);
