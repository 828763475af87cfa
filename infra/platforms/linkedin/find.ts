import type { Json, PlatformAdapter, PublishRequest } from '#contracts/ports/platform.ts';
import { unknown } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import {
  aroundCall,
  asAsked,
  askAbout,
  type Between,
  comparable,
  crossingIn,
  crossingOf,
  findAll,
  lookFor,
  type OwnPosts,
} from '../kit/own-posts.ts';
import { integerIn, listIn, type Members, membersOf, numberIn, textIn } from '../shared/members.ts';
import { linkTo, little, shownText } from './post.ts';
import { enc, isOrganization, isPostId, reading } from './tables.ts';

/**
 * Looks for the post of a call whose answer was lost among the newest posts of an organization: by its files, else by the
 * time of the call and the text. LinkedIn lists no posts of a member: there a person looks. What is not listed proves nothing.
 */

export const boundaryOf = (request: PublishRequest, mediaIds: readonly string[], now: number): Json =>
  crossingOf([request.content], mediaIds, now);

/** "Posts API": a page has a hundred at most. */
const perPage = 50;
const maxPages = 4;

const timeOf = (post: Members): number => numberIn(post, 'createdAt') ?? numberIn(post, 'publishedAt') ?? Number.NaN;

/** Ids of the files of a post. */
const filesOf = (post: Members): readonly string[] => {
  const content = membersOf(post.content);
  const images = listIn(content?.multiImage, 'images').map((one) => textIn(one, 'id') ?? '');
  const single = textIn(content?.media, 'id');
  return single === null ? images : [single];
};

/** As people see it: LinkedIn may write the format in another way than we do. */
const seen = (text: string): string => comparable(shownText(text));

/** @param files ids of the uploads, or how many files the post has */
const isIt = (post: Members, request: PublishRequest, files: readonly string[] | number): boolean => {
  const [own, count] = [filesOf(post), typeof files === 'number' ? files : files.length];
  if (own.length !== count) return false;
  if (typeof files !== 'number' && count > 0) return files.every((id) => own.includes(id));
  return seen(textIn(post, 'commentary') ?? '') === seen(little(request.content));
};

const ownPosts = (
  bound: Bound,
  request: PublishRequest,
  between: Between,
  is: (post: Members) => boolean,
): OwnPosts => ({
  ...{ list: 'elements', ...between, at: timeOf, isIt: is, maxPages },
  page: (cursor) => {
    const author = enc(request.account.externalId);
    const path = `/posts?q=author&author=${author}&count=${perPage}&start=${cursor ?? '0'}&sortBy=CREATED`;
    return askAbout(bound, request, reading(path, 'FINDER'));
  },
  next: (body) =>
    listIn(body, 'elements').length < perPage ? null : String((integerIn(body.paging, 'start') ?? 0) + perPage),
  show: (post) => {
    const externalId = textIn(post, 'id') ?? '';
    return isPostId(externalId) ? { externalId, permalink: linkTo(request, externalId) } : null;
  },
});

export const reconcile =
  (bound: Bound): PlatformAdapter['reconcile'] =>
  async (request, { data }) => {
    if (!isOrganization(request.account.externalId)) {
      return { kind: 'undecided', failure: unknown('LinkedIn lists no posts of a member: look at the profile') };
    }
    const crossed = crossingIn(data, [request.content]);
    if (crossed === null) return { kind: 'undecided' };
    const { at, mediaIds } = crossed;
    const is = (post: Members): boolean => isIt(post, request, mediaIds);
    return lookFor(ownPosts(bound, request, aroundCall(bound, at), is), bound.clock);
  };

/** By text and number of files: the uploads of a call that nobody remembers have no known ids. */
export const findPosts =
  (bound: Bound): NonNullable<PlatformAdapter['findPosts']> =>
  async (request) => {
    if (!isOrganization(request.account.externalId)) return { kind: 'not_askable' };
    const is = (post: Members): boolean => isIt(post, request, request.media.length);
    return findAll(ownPosts(bound, request, asAsked(request), is), bound.clock);
  };
