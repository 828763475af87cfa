import { createHash } from 'node:crypto';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type {
  FindOutcome,
  FindRequest,
  Json,
  ListedPost,
  PublishRequest,
  ReconcileOutcome,
  Undecided,
} from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { instantOf, listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import type { Ask } from './client.ts';
import { type NetworkAnswer, notReached, type OkAnswer, undecidedBy } from './errors.ts';
import type { Bound } from './network.ts';
import { subjectOf } from './upload.ts';

/**
 * Looks through an account's own posts, newest first, for the one of a call whose answer was lost. What is not there proves
 * nothing: the list of a network may be behind.
 */

/** A text without what a network may write in another way. */
export const comparable = (text: string | null): string =>
  (text ?? '').normalize('NFC').replaceAll(/\s+/gu, ' ').trim();

const hashOf = (content: Json): string => createHash('sha256').update(JSON.stringify(content)).digest('hex');

/** What `steps.boundary(` is given of a call. @param content what tells its post from others */
export const crossingOf = (content: Json, mediaIds: readonly string[], now: number): Json => ({
  ...{ at: new Date(now).toISOString(), contentHash: hashOf(content), mediaIds },
});

/** The same again; null: it was of other content, with which the search would find the wrong post. */
export const crossingIn = (
  data: Json,
  content: Json,
): { readonly at: number; readonly mediaIds: readonly string[] } | null => {
  const at = Date.parse(textIn(data, 'at') ?? '');
  if (Number.isNaN(at) || textIn(data, 'contentHash') !== hashOf(content)) return null;
  const ids = membersOf(data)?.mediaIds;
  return { at, mediaIds: Array.isArray(ids) ? ids.filter((one) => typeof one === 'string') : [] };
};

export interface OwnPosts {
  /** Asks for a page. @param cursor null: the first */
  page(cursor: string | null): Promise<NetworkAnswer>;
  /** Member of an answer that has the posts. */
  readonly list: string;
  /** Whether an answer without that member says that there are none. Default: it says nothing. */
  isEmpty?(body: Members): boolean;
  /** The next page; null: there is none. */
  next(body: Members): string | null;
  /** Milliseconds since the epoch; NaN: the network does not say. */
  at(post: Members): number;
  /** Milliseconds since the epoch: no older post is looked for. */
  readonly since: number;
  /** Milliseconds since the epoch: no newer post is looked for. Absent: each may be it. */
  readonly until?: number;
  /** The network promises no order by time: the search goes on behind an older post too. */
  readonly isUnordered?: true;
  isIt(post: Members): boolean;
  /** What names the post; null: it has no id. */
  show(post: Members): Omit<ListedPost, 'publishedAt'> | null;
  readonly maxPages: number;
}

type Listed =
  /** Newest first. `isWhole`: the account has no more of that time. */
  { readonly kind: 'listed'; readonly posts: readonly ListedPost[]; readonly isWhole: boolean } | Undecided;

/** Of our clock and the network's: with a larger one it was asked for another time than that of the call. */
export const skewMs = 60_000;

/** Of times in milliseconds since the epoch, as `OwnPosts` has them. */
export interface Between {
  readonly since: number;
  readonly until: number;
}

/** When the post of a call was made, which the network may do after we gave the call up. @param at of the call */
export const aroundCall = ({ tables, boundaryDeadlineMs }: Bound, at: number): Between => {
  const { settleWindowMs } = rulesOf(tables.platform).publish;
  return { since: at - skewMs, until: at + boundaryDeadlineMs + settleWindowMs + skewMs };
};

export const asAsked = ({ from, until }: Pick<FindRequest, 'from' | 'until'>): Between => ({
  ...{ since: Date.parse(from), until: Date.parse(until) },
});

/** A question about a post, which takes as long as its call may. */
export const askAbout = (
  { client, boundaryDeadlineMs }: Pick<Bound, 'client' | 'boundaryDeadlineMs'>,
  request: Pick<PublishRequest, 'account' | 'targetId'>,
  ask: Ask,
): Promise<NetworkAnswer> => client.call(subjectOf(request), ask, AbortSignal.timeout(boundaryDeadlineMs));

const undecided = (said: string): Undecided => ({ kind: 'undecided', failure: notReached(said) });

/** Why an answer is no page of the list; null: it is one. */
const noPage = (own: OwnPosts, { body, headers }: OkAnswer, now: number): Undecided | null => {
  if (!Array.isArray(body[own.list]) && own.isEmpty?.(body) !== true)
    return undecided('the answer has no list of posts');
  const skew = Math.abs(Date.parse(headers.date ?? '') - now);
  return skew > skewMs ? undecided(`the clocks of the network and of this machine differ by ${skew} ms`) : null;
};

const listOwn = async (own: OwnPosts, now: () => number): Promise<Listed> => {
  let cursor: string | null = null;
  const posts: ListedPost[] = [];
  const cursors = new Set<string>();
  let isUnnamed = false;
  const { until = Number.POSITIVE_INFINITY } = own;
  for (let page = 0; page < own.maxPages; page += 1) {
    const answer = await own.page(cursor);
    if (answer.kind !== 'ok') return undecidedBy(answer, now());
    const none = noPage(own, answer, now());
    if (none !== null) return none;
    const shown = listIn(answer.body, own.list);
    for (const post of shown) {
      if (own.at(post) < own.since || own.at(post) > until || !own.isIt(post)) continue;
      const one = own.show(post);
      if (one === null) isUnnamed = true;
      else posts.push({ ...one, publishedAt: instantOf(own.at(post)) ?? new Date(own.since).toISOString() });
    }
    cursor = own.next(answer.body);
    const last = shown.at(-1);
    if (cursor === null || (own.isUnordered !== true && last !== undefined && own.at(last) < own.since)) {
      // A post without an id is there, whosever it is.
      return { kind: 'listed', posts, isWhole: !isUnnamed };
    }
    // One that comes again leads round in a circle.
    if (cursors.has(cursor)) break;
    cursors.add(cursor);
  }
  return { kind: 'listed', posts, isWhole: false };
};

const newestFirst = (listed: Listed, { isUnordered }: OwnPosts): Listed =>
  listed.kind === 'listed' && isUnordered === true
    ? { ...listed, posts: listed.posts.toSorted((a, b) => b.publishedAt.localeCompare(a.publishedAt)) }
    : listed;

/** The list begins with the newest: of several the first one made is ours. */
export const lookFor = async (own: OwnPosts, now: () => number): Promise<ReconcileOutcome> => {
  const listed = newestFirst(await listOwn(own, now), own);
  if (listed.kind === 'undecided') return listed;
  const post = listed.posts.at(-1);
  if (post !== undefined) return { kind: 'present', ...post };
  return listed.isWhole ? { kind: 'absent' } : { kind: 'undecided' };
};

/** Posts that are listed for one question at most. */
const maxFound = 20;

export const findAll = async (own: OwnPosts, now: () => number): Promise<FindOutcome> => {
  const listed = newestFirst(await listOwn(own, now), own);
  if (listed.kind === 'undecided') return listed;
  if (listed.posts.length === 0 && !listed.isWhole) return { kind: 'undecided' };
  return { kind: 'listed', posts: listed.posts.toReversed().slice(0, maxFound) };
};

const perPage = 100;
const second = (at: number): string => String(Math.floor(at / 1_000));

/** Milliseconds since the epoch; `until` null: now. */
export interface Span {
  readonly from: number;
  readonly until: number | null;
}

/** A page of a list that goes by cursors and by spans of seconds, as Meta's do. @param path of the list, from `{api}` on */
export const pageByCursor =
  (
    { client, boundaryDeadlineMs }: Pick<Bound, 'client' | 'boundaryDeadlineMs'>,
    subject: NetworkCall['subject'],
    path: string,
    fields: string,
    span: Span | null,
  ): OwnPosts['page'] =>
  (cursor) => {
    const of =
      span === null ? {} : { since: second(span.from), ...(span.until === null ? {} : { until: second(span.until) }) };
    const query = { fields, limit: String(perPage), ...of, ...(cursor === null ? {} : { after: cursor }) };
    return client.call(subject, { method: 'GET', path, query }, AbortSignal.timeout(boundaryDeadlineMs));
  };

/** A page may be short: what the account may not see is left out of it. `next` names the one behind it, as a full page may. */
export const nextCursor = ({ paging, data }: Members): string | null => {
  const isLast = textIn(paging, 'next') === null && !(Array.isArray(data) && data.length >= perPage);
  return isLast ? null : textIn(membersOf(paging)?.cursors, 'after');
};

export const timestampOf = (post: Members): number => Date.parse(textIn(post, 'timestamp') ?? '');
