import type { Json, PlatformAdapter, PublishRequest, ReconcileOutcome } from '#contracts/ports/platform.ts';
import { beforeBoundary } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { findAll, lookFor, type OwnPosts } from '../kit/own-posts.ts';
import { subjectOf } from '../kit/upload.ts';
import { isMediaId, at as pathOf } from '../meta/graph.ts';
import { listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { type ContainerWork, hashOf, statusOf } from './containers.ts';

/**
 * Looks for the post of a call whose answer was lost: the container says whether it was published, and the account's own
 * list, which may be some seconds behind, says as which post.
 */

const parentOf = ({ thread }: PublishRequest): string | null => thread?.replyTo?.parent ?? null;

const contentOf = (request: PublishRequest): string => {
  const files = request.media.map(({ sha256 }) => sha256);
  return hashOf(request.content, parentOf(request), files);
};

export const boundaryOf = (request: PublishRequest, container: string, now: number): Json => ({
  ...{ at: new Date(now).toISOString(), contentHash: contentOf(request), container },
});

/** The container of a boundary; null: another adapter wrote it. */
export const containerIn = (data: Json): string | null => textIn(data, 'container');

/** Of our clock and Threads'. */
const skewMs = 60_000;
const perPage = 100;
/** More than an account may publish in a day. */
const maxPages = 4;

const second = (at: number): string => String(Math.floor(at / 1_000));

export const timeOf = (post: Members): number => Date.parse(textIn(post, 'timestamp') ?? '');

/** A page may be short: what the account may not see is left out of it. `next` names the one behind it, as a full page may. */
const nextOf = ({ paging, data }: Members): string | null => {
  const isLast = textIn(paging, 'next') === null && !(Array.isArray(data) && data.length >= perPage);
  return isLast ? null : textIn(membersOf(paging)?.cursors, 'after');
};

interface Span {
  /** Milliseconds since the epoch. */
  readonly from: number;
  /** Null: now. */
  readonly until: number | null;
}

/** @param edge of the account: its posts or its replies */
export const pageOf = (
  { bound, subject }: Pick<ContainerWork, 'bound' | 'subject'>,
  edge: string,
  fields: string,
  { from, until }: Span,
): OwnPosts['page'] => {
  const span = { since: second(from), ...(until === null ? {} : { until: second(until) }) };
  return (cursor) => {
    const query = { fields, limit: String(perPage), ...span, ...(cursor === null ? {} : { after: cursor }) };
    const signal = AbortSignal.timeout(bound.boundaryDeadlineMs);
    return bound.client.call(subject, { method: 'GET', path: pathOf(edge), query }, signal);
  };
};

export const edgeOf = (user: string, isReply: boolean): string => `${user}/${isReply ? 'replies' : 'threads'}`;

const ownPosts = (bound: Bound, request: PublishRequest, from: number, until: number | null): OwnPosts => {
  const isReply = parentOf(request) !== null;
  const fields = `id,text,timestamp,permalink,media_type,children${isReply ? ',replied_to' : ''}`;
  const edge = edgeOf(request.account.externalId, isReply);
  return {
    page: pageOf({ bound, subject: subjectOf(request) }, edge, fields, { from, until }),
    ...{ list: 'data', next: nextOf, at: timeOf, since: from, maxPages },
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
const comparable = (text: string): string => text.normalize('NFC').replaceAll('#', '').replace(/\s+/gu, ' ').trim();

const isIt = (post: Members, request: PublishRequest): boolean =>
  textIn(post, 'media_type') !== 'REPOST_FACADE' &&
  filesOf(post) === request.media.length &&
  (textIn(post.replied_to, 'id') ?? null) === parentOf(request) &&
  comparable(textIn(post, 'text') ?? '') === comparable(request.content);

/** The post of a container that was published. What the list lacks may come up in it. */
export const publishedAs = async (bound: Bound, request: PublishRequest, since: number): Promise<ReconcileOutcome> => {
  const found = await lookFor(ownPosts(bound, request, since - skewMs, null), bound.clock);
  return found.kind === 'absent' ? { kind: 'undecided' } : found;
};

export const reconcile =
  (bound: Bound): PlatformAdapter['reconcile'] =>
  async (request, { data }) => {
    const [at, container] = [Date.parse(textIn(data, 'at') ?? ''), containerIn(data)];
    // With another text the search would find the wrong post.
    const isOurs = container !== null && !Number.isNaN(at) && textIn(data, 'contentHash') === contentOf(request);
    if (!isOurs) return { kind: 'undecided' };
    const signal = AbortSignal.timeout(bound.boundaryDeadlineMs);
    const status = await statusOf({ bound, subject: subjectOf(request), signal }, container);
    switch (status.kind) {
      // A container is published once: the next attempt uses it again, so it is out at most once.
      case 'finished':
      case 'broken':
        return { kind: 'absent' };
      case 'working':
        return { kind: 'undecided' };
      case 'published':
      case 'gone':
        return publishedAs(bound, request, at);
      default:
        return { kind: 'undecided', failure: beforeBoundary(status, bound.clock()).failure };
    }
  };

/** By text, parent, time and number of files, where nothing is known of a container. */
export const findPosts =
  (bound: Bound): NonNullable<PlatformAdapter['findPosts']> =>
  async (request) => {
    const [from, until] = [Date.parse(request.from), Date.parse(request.until)];
    const own = ownPosts(bound, request, from, until < bound.clock() ? until + 1_000 : null);
    return findAll({ ...own, isIt: (post) => !(timeOf(post) > until) && own.isIt(post) }, bound.clock);
  };
