import type { Json, PlatformAdapter, PublishRequest, ReconcileOutcome } from '#contracts/ports/platform.ts';
import { reconcileContainer } from '../kit/containers.ts';
import type { Bound } from '../kit/network.ts';
import {
  asAsked,
  comparable,
  findAll,
  lookFor,
  nextCursor,
  type OwnPosts,
  pageByCursor,
  skewMs,
  timestampOf,
} from '../kit/own-posts.ts';
import { subjectOf } from '../kit/upload.ts';
import { at, isMediaId } from '../meta/graph.ts';
import { listIn, type Members, textIn } from '../shared/members.ts';
import { containers } from './containers.ts';

/**
 * Looks for the post of a call whose answer was lost: the container says whether it was published, and the list of the
 * account, or that of its stories, as which post.
 */

/** What tells the post from others. */
export const contentOf = ({ content, media }: PublishRequest): Json => [
  ...[content, media.map(({ sha256, use }) => [sha256, use])],
];

/** Stories tell each other apart by the second alone: one of a moment before is another one. */
const skewMsOfStory = 2_000;
/** More than an account may publish in a day. */
const maxPages = 4;

const isStory = ({ media }: PublishRequest): boolean => media[0]?.use === 'story';

export const edgeOf = (user: string, isOfStories: boolean): string =>
  at(`${user}/${isOfStories ? 'stories' : 'media'}`);

const ownPosts = (bound: Bound, request: PublishRequest, from: number, until: number | null): OwnPosts => {
  const ofStories = isStory(request);
  const fields = `id,caption,timestamp,permalink,media_type,media_product_type,children`;
  const edge = edgeOf(request.account.externalId, ofStories);
  return {
    // Stories are those of one day, and are listed without spans.
    page: pageByCursor(bound, subjectOf(request), edge, fields, ofStories ? null : { from, until }),
    ...{ list: 'data', next: nextCursor, at: timestampOf, since: from, maxPages },
    isIt: (post) => isIt(post, request),
    show: (post) => {
      const externalId = textIn(post, 'id') ?? '';
      return isMediaId(externalId) ? { externalId, permalink: textIn(post, 'permalink') } : null;
    },
  };
};

/** "IG Media": a reel reads back as a video, and a carousel as an album. */
const isSuch = (post: Members, { media }: PublishRequest): boolean => {
  const type = textIn(post, 'media_type');
  if (media.length > 1) return type === 'CAROUSEL_ALBUM' && listIn(post.children, 'data').length === media.length;
  return type === (media[0]?.kind === 'video' ? 'VIDEO' : 'IMAGE');
};

/** A story has no words: its kind and its minute must do. */
const isIt = (post: Members, request: PublishRequest): boolean =>
  isSuch(post, request) && (isStory(request) || comparable(textIn(post, 'caption')) === comparable(request.content));

/** The post of a container that was published. What the list lacks may come up in it. */
export const publishedAs =
  (bound: Bound, request: PublishRequest) =>
  async (since: number): Promise<ReconcileOutcome> => {
    const from = since - (isStory(request) ? skewMsOfStory : skewMs);
    const found = await lookFor(ownPosts(bound, request, from, null), bound.clock);
    return found.kind === 'absent' ? { kind: 'undecided' } : found;
  };

export const reconcile =
  (bound: Bound): PlatformAdapter['reconcile'] =>
  (request, { data }) => {
    const work = { bound, subject: subjectOf(request), signal: AbortSignal.timeout(bound.boundaryDeadlineMs) };
    return reconcileContainer(containers, work, data, contentOf(request), publishedAs(bound, request));
  };

/** By caption, kind, time and number of files, where nothing is known of a container. */
export const findPosts =
  (bound: Bound): NonNullable<PlatformAdapter['findPosts']> =>
  async (request) => {
    const { since, until } = asAsked(request);
    const own = ownPosts(bound, request, since, until < bound.clock() ? until + 1_000 : null);
    return findAll({ ...own, until }, bound.clock);
  };
