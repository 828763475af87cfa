import { createHash } from 'node:crypto';
import type { Checkpoint, FindRequest, Json, PublishRequest, Undecided } from '#contracts/ports/platform.ts';
import { linksOfX, rulesOf } from '#domain/platforms/index.ts';
import { listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import type { Ask, XApi, XResult } from './api.ts';
import { billed, costOfList, type Spent } from './billed.ts';
import { notReached } from './errors.ts';
import type { XOptions } from './options.ts';
import { beforeCreate } from './outcomes.ts';
import { postIdOf, quotedId } from './post.ts';
import { subjectOf } from './upload.ts';

/**
 * Looks for the post of a call whose answer was lost among the newest posts of the account: by the time of the call, the
 * text, the post it replies to, and the files, whose keys on X end with the ids of their uploads. What is not there proves
 * nothing: X's index is some seconds behind.
 */

const { publish: rules } = rulesOf('x');

const hashOf = ({ content, thread }: PublishRequest): string =>
  createHash('sha256')
    .update(JSON.stringify([content, thread?.replyTo?.parent ?? null]))
    .digest('hex');

export const boundaryOf = (request: PublishRequest, mediaIds: readonly string[], now: number): Json => ({
  at: new Date(now).toISOString(),
  contentHash: hashOf(request),
  mediaIds,
});

export type Found =
  | { readonly kind: 'found'; readonly id: string; readonly createdAt: string }
  | { readonly kind: 'absent' }
  | Undecided;

/** Of our clock and X's. */
const skewMs = 60_000;
/** So few that 25,000 characters of each stay within one answer. */
const perPage = 25;
/** X lets an account make 100 posts in 15 minutes: of the minutes around a call these pages hold all. */
const maxPages = 4;

type Listed =
  /** Newest first; `isWhole`: the account has no more of that time. */
  { readonly kind: 'listed'; readonly posts: readonly Members[]; readonly isWhole: boolean } | Undecided;

/** Milliseconds since the epoch. */
interface Span {
  readonly from: number;
  readonly until: number;
}

/** X refuses an end of the time that is not as long ago, milliseconds; then there is nothing behind it yet. */
const endsAgoMs = 15_000;

const references = { 'tweet.fields': 'referenced_tweets', 'post.fields': 'referenced_posts' } as const;

// X takes whole seconds.
const second = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;

/** The account's own posts of a time that `isIt` names. @param deadlineMs milliseconds for each page */
const listOwn = async (
  options: XOptions,
  api: XApi,
  request: PublishRequest,
  { from, until }: Span,
  deadlineMs: number,
  is: (post: Members) => boolean,
): Promise<Listed> => {
  const { workspaceId, account } = request;
  let next: string | null = null;
  const posts: Members[] = [];
  for (let page = 0; page < maxPages; page += 1) {
    const ask = (fieldsName: keyof typeof references): Ask => ({
      method: 'GET',
      path: `/2/users/${encodeURIComponent(account.externalId)}/tweets`,
      query: {
        ...{ max_results: String(perPage), start_time: second(from) },
        ...(until > options.clock() - endsAgoMs ? {} : { end_time: second(until) }),
        [fieldsName]: `attachments,created_at,entities,note_tweet,${references[fieldsName]}`,
        ...(next === null ? {} : { pagination_token: next }),
      },
    });
    const result: XResult | Spent = await billed(
      options,
      { workspaceId, reads: perPage, isOptional: false },
      () => api.callFor(subjectOf(request), ask, AbortSignal.timeout(deadlineMs)),
      costOfList(perPage),
    );
    if (result.kind === 'spent') return { kind: 'undecided', failure: notReached(result.reason) };
    if (result.kind !== 'ok') return { kind: 'undecided', failure: beforeCreate(result, options.clock()).failure };
    posts.push(...listIn(result.body, 'data').filter(is));
    next = textIn(result.body.meta, 'next_token');
    if (next === null) break;
  }
  return { kind: 'listed', posts, isWhole: next === null };
};

const createdAt = (post: Members, fallback: number): string => {
  const at = Date.parse(textIn(post, 'created_at') ?? '');
  return new Date(Number.isNaN(at) ? fallback : at).toISOString();
};

/** @param deadlineMs milliseconds for each page */
export const lookFor = async (
  options: XOptions,
  api: XApi,
  request: PublishRequest,
  { data }: Checkpoint,
  deadlineMs: number,
): Promise<Found> => {
  const at = Date.parse(textIn(data, 'at') ?? '');
  // With another text the search would find the wrong post.
  if (Number.isNaN(at) || textIn(data, 'contentHash') !== hashOf(request)) return { kind: 'undecided' };
  const ids = membersOf(data)?.mediaIds;
  const mediaIds = Array.isArray(ids) ? ids.filter((one) => typeof one === 'string') : [];
  const wanted = comparable(request.content, linksOfX(request.content));
  const is = (post: Members): boolean => isIt(post, request, wanted, mediaIds);
  // X may make the post after we gave up the call, within the settle window.
  const span = { from: at - skewMs, until: at + deadlineMs + rules.settleWindowMs + skewMs };
  const listed = await listOwn(options, api, request, span, deadlineMs, is);
  if (listed.kind === 'undecided') return listed;
  // The timeline begins with the newest: of several the first one made is ours.
  const post = listed.posts.at(-1);
  const id = textIn(post, 'id');
  if (post !== undefined && id !== null) return { kind: 'found', id, createdAt: createdAt(post, at) };
  return listed.isWhole ? { kind: 'absent' } : { kind: 'undecided' };
};

/** Posts that are listed for one question at most. */
const maxFound = 20;

/** By text, parent and number of files: the uploads of a call that nobody remembers have no known ids. */
export const findOwn = async (
  options: XOptions,
  api: XApi,
  request: FindRequest,
  deadlineMs: number,
): Promise<
  { readonly kind: 'listed'; readonly posts: readonly { readonly id: string; readonly at: string }[] } | Undecided
> => {
  const wanted = comparable(request.content, linksOfX(request.content));
  const from = Date.parse(request.from);
  const asked = Date.parse(request.until);
  const is = (post: Members): boolean => {
    const at = Date.parse(textIn(post, 'created_at') ?? '');
    return !(at > asked) && isIt(post, request, wanted, request.media.length);
  };
  const listed = await listOwn(options, api, request, { from, until: asked }, deadlineMs, is);
  if (listed.kind === 'undecided') return listed;
  if (listed.posts.length === 0 && !listed.isWhole) return { kind: 'undecided' };
  const posts = listed.posts.flatMap((post) => {
    const id = textIn(post, 'id');
    return id === null ? [] : [{ id, at: createdAt(post, from) }];
  });
  return { kind: 'listed', posts: posts.toReversed().slice(0, maxFound) };
};

/** @param files ids of the uploads, or how many files the post has */
const isIt = (post: Members, request: PublishRequest, wanted: string, files: readonly string[] | number): boolean => {
  const references = [...listIn(post, 'referenced_tweets'), ...listIn(post, 'referenced_posts')];
  const parent = references.find((one) => one.type === 'replied_to')?.id ?? null;
  if (parent !== (request.thread?.replyTo?.parent ?? null)) return false;
  const keys = membersOf(post.attachments)?.media_keys;
  const media = Array.isArray(keys) ? keys.map(String) : [];
  if (media.length !== (typeof files === 'number' ? files : files.length)) return false;
  if (typeof files !== 'number' && files.length > 0) {
    return files.every((id) => media.some((key) => key.endsWith(`_${id}`)));
  }
  // X may take an address of the quoted post that the author wrote at the end for its own.
  return [quotedId(request), null].some((quoted) => textOf(post, quoted) === wanted);
};

/** As its author wrote it. A long post has its whole text apart. @param quoted id of the post that it quotes */
const textOf = (post: Members, quoted: string | null): string => {
  const whole = membersOf(post.note_tweet) ?? post;
  // Before the addresses are put back: those may have such characters of their own.
  let text = unescaped(textIn(whole, 'text') ?? '');
  for (const url of listIn(whole.entities, 'urls')) {
    const [short, expanded] = [textIn(url, 'url') ?? '', textIn(url, 'expanded_url') ?? ''];
    if (short === '') continue;
    // X puts the address of the quoted post at the end, whatever the author wrote before it.
    const isAdded = quoted !== null && postIdOf(expanded) === quoted && text.endsWith(short);
    text = isAdded ? text.slice(0, -short.length) : text.replace(short, () => bare(expanded));
  }
  return spaced(text);
};

const comparable = (content: string, found: Iterable<{ readonly start: number; readonly end: number }>): string => {
  let text = '';
  let from = 0;
  for (const { start, end } of found) {
    text += content.slice(from, start) + bare(content.slice(start, end));
    from = end;
  }
  return spaced(text + content.slice(from));
};

/** X writes a scheme before a bare host, and a slash behind it. */
const bare = (url: string): string =>
  url
    .replace(/^https?:\/\//i, '')
    .replace(/\/$/, '')
    .toLowerCase();
const spaced = (text: string): string => text.normalize('NFC').replace(/\s+/gu, ' ').trim();
const unescaped = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
