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
import { isMediaId, at as pathOf } from '../meta/graph.ts';
import { listIn, type Members, textIn } from '../shared/members.ts';
import { containers } from './containers.ts';

/**
 * Looks for the post of a call whose answer was lost: the container says whether it was published, and the account's own
 * list, which may be some seconds behind, says as which post.
 */

const parentOf = ({ thread }: PublishRequest): string | null => thread?.replyTo?.parent ?? null;

/** What tells the post from others. */
export const contentOf = (request: PublishRequest): Json => [
  ...[request.content, parentOf(request), request.media.map(({ sha256 }) => sha256)],
];

/** More than an account may publish in a day. */
const maxPages = 4;

export const edgeOf = (user: string, isReply: boolean): string => pathOf(`${user}/${isReply ? 'replies' : 'threads'}`);

const ownPosts = (bound: Bound, request: PublishRequest, from: number, until: number | null): OwnPosts => {
  const isReply = parentOf(request) !== null;
  const fields = `id,text,timestamp,permalink,media_type,children${isReply ? ',replied_to' : ''}`;
  const edge = edgeOf(request.account.externalId, isReply);
  return {
    page: pageByCursor(bound, subjectOf(request), edge, fields, { from, until }),
    ...{ list: 'data', next: nextCursor, at: timestampOf, since: from, maxPages },
    isIt: (post) => isIt(post, request),
    show: (post) => {
      const externalId = textIn(post, 'id') ?? '';
      return isMediaId(externalId) ? { externalId, permalink: textIn(post, 'permalink') } : null;
    },
  };
};

const filesOf = (post: Members): number => {
  const type = textIn(post, 'media_type');
  if (type === 'TEXT_POST') return 0;
  return type === 'CAROUSEL_ALBUM' ? listIn(post.children, 'data').length : 1;
};

/** Threads may take the mark off the first tag, and spaces off the ends. */
const unmarked = (text: string): string => comparable(text.replaceAll('#', ''));

const isIt = (post: Members, request: PublishRequest): boolean =>
  textIn(post, 'media_type') !== 'REPOST_FACADE' &&
  filesOf(post) === request.media.length &&
  (textIn(post.replied_to, 'id') ?? null) === parentOf(request) &&
  unmarked(textIn(post, 'text') ?? '') === unmarked(request.content);

/** The post of a container that was published. What the list lacks may come up in it. */
export const publishedAs =
  (bound: Bound, request: PublishRequest) =>
  async (since: number): Promise<ReconcileOutcome> => {
    const found = await lookFor(ownPosts(bound, request, since - skewMs, null), bound.clock);
    return found.kind === 'absent' ? { kind: 'undecided' } : found;
  };

export const reconcile =
  (bound: Bound): PlatformAdapter['reconcile'] =>
  (request, { data }) => {
    const work = { bound, subject: subjectOf(request), signal: AbortSignal.timeout(bound.boundaryDeadlineMs) };
    return reconcileContainer(containers, work, data, contentOf(request), publishedAs(bound, request));
  };

/** By text, parent, time and number of files, where nothing is known of a container. */
export const findPosts =
  (bound: Bound): NonNullable<PlatformAdapter['findPosts']> =>
  async (request) => {
    const { since, until } = asAsked(request);
    const own = ownPosts(bound, request, since, until < bound.clock() ? until + 1_000 : null);
    return findAll({ ...own, until }, bound.clock);
  };
