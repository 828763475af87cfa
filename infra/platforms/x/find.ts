import type { Json, PlatformAdapter, PublishRequest } from '#contracts/ports/platform.ts';
import { linksOfX } from '#domain/platforms/index.ts';
import type { Ask } from '../kit/client.ts';
import type { OkAnswer } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import {
  aroundCall,
  asAsked,
  type Between,
  crossingIn,
  crossingOf,
  findAll,
  lookFor,
  type OwnPosts,
  comparable as spaced,
} from '../kit/own-posts.ts';
import { subjectOf } from '../kit/upload.ts';
import { listIn, type Members, membersOf, numberIn, textIn } from '../shared/members.ts';
import type { CallFor, FieldsName } from './fields.ts';
import { linkTo, postIdOf, quotedId } from './post.ts';

/**
 * Looks for the post of a call whose answer was lost among the newest posts of the account: by the time of the call, the
 * text, the post it replies to, and the files, whose keys on X end with the ids of their uploads. What is not there proves
 * nothing: X's index is some seconds behind.
 */

/** Of a call, what tells its post from others. */
const contentOf = ({ content, thread }: PublishRequest): Json => [content, thread?.replyTo?.parent ?? null];

export const boundaryOf = (request: PublishRequest, mediaIds: readonly string[], now: number): Json =>
  crossingOf(contentOf(request), mediaIds, now);

/** So few that 25,000 characters of each stay within one answer. */
const perPage = 25;
/** X lets an account make 100 posts in 15 minutes: of the minutes around a call these pages hold all. */
const maxPages = 4;
/** X refuses an end of the time that is not as long ago, milliseconds; then there is nothing behind it yet. */
const endsAgoMs = 15_000;

const references = { 'tweet.fields': 'referenced_tweets', 'post.fields': 'referenced_posts' } as const;

// X takes whole seconds.
const second = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;

/** X leaves the list out where it is empty, and also where it may not show it: only the count tells them apart. */
const isEmpty = ({ meta }: Members): boolean => numberIn(meta, 'result_count') === 0;

/** X bills each post that it shows. */
const shownIn = ({ body: { data } }: OkAnswer): number => (Array.isArray(data) ? data.length : 0);

const timeOf = (post: Members): number => Date.parse(textIn(post, 'created_at') ?? '');

/** The account's own posts of a time that `isIt` names. */
const ownPosts = (
  { clock, boundaryDeadlineMs }: Bound,
  callFor: CallFor,
  request: PublishRequest,
  { since, until }: Between,
  isIt: (post: Members) => boolean,
): OwnPosts => {
  const { workspaceId, account } = request;
  const ask = (cursor: string | null, fieldsName: FieldsName): Ask => ({
    method: 'GET',
    path: `/2/users/${encodeURIComponent(account.externalId)}/tweets`,
    query: {
      ...{ max_results: String(perPage), start_time: second(since) },
      ...(until > clock() - endsAgoMs ? {} : { end_time: second(until) }),
      [fieldsName]: `attachments,created_at,entities,note_tweet,${references[fieldsName]}`,
      ...(cursor === null ? {} : { pagination_token: cursor }),
    },
    cost: { workspaceId, reads: perPage, isOptional: false, shown: shownIn },
  });
  return {
    ...{ list: 'data', isEmpty, since, until, at: timeOf, isIt, maxPages },
    page: (cursor) => callFor(subjectOf(request), (name) => ask(cursor, name), AbortSignal.timeout(boundaryDeadlineMs)),
    next: ({ meta }) => textIn(meta, 'next_token'),
    show: (post) => {
      const externalId = textIn(post, 'id');
      return externalId === null ? null : { externalId, permalink: linkTo(request, externalId) };
    },
  };
};

export const reconcile =
  (bound: Bound, callFor: CallFor): PlatformAdapter['reconcile'] =>
  async (request, { data }) => {
    const crossed = crossingIn(data, contentOf(request));
    if (crossed === null) return { kind: 'undecided' };
    const { at, mediaIds } = crossed;
    const wanted = comparable(request.content, linksOfX(request.content));
    const is = (post: Members): boolean => isIt(post, request, wanted, mediaIds);
    return lookFor(ownPosts(bound, callFor, request, aroundCall(bound, at), is), bound.clock);
  };

/** By text, parent and number of files: the uploads of a call that nobody remembers have no known ids. */
export const findPosts =
  (bound: Bound, callFor: CallFor): NonNullable<PlatformAdapter['findPosts']> =>
  async (request) => {
    const wanted = comparable(request.content, linksOfX(request.content));
    const is = (post: Members): boolean => isIt(post, request, wanted, request.media.length);
    return findAll(ownPosts(bound, callFor, request, asAsked(request), is), bound.clock);
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

const unescaped = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
