import type { PlatformAdapter, PublishRequest } from '#contracts/ports/platform.ts';
import type { Failure } from '#schemas/target.ts';
import type { Ask } from '../kit/client.ts';
import {
  type ContainerWork,
  chosenContainer,
  containerCrossing,
  type MadeContainer,
  mayBeOut,
  noneLeft,
  type PostQuota,
  permalinkAt,
} from '../kit/containers.ts';
import {
  beforeBoundary,
  behindBoundary,
  commentTooLate,
  failureOf,
  isNoPost,
  noIdOfPost,
  type OkAnswer,
  publishTooLate,
  unknown,
} from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { removalBy } from '../kit/removal.ts';
import { subjectOf } from '../kit/upload.ts';
import { at, commentBy, isMediaId, noComment } from '../meta/graph.ts';
import { textIn } from '../shared/members.ts';
import { containers, postOf } from './containers.ts';
import { contentOf, edgeOf, publishedAs } from './find.ts';
import { isGone } from './tables.ts';

/** Posts, reels, stories and first comments: a container, and one call an attempt that publishes it. */

/** Null: the answer has none. */
const madeBy = ({ body }: OkAnswer): string | null => {
  const id = textIn(body, 'id');
  return id !== null && isMediaId(id) ? id : null;
};

const callOf = (user: string, { id }: MadeContainer): Ask => ({
  ...{ method: 'POST', path: at(`${user}/media_publish`), fields: { creation_id: id } },
});

/** "Content Publishing Limit": a carousel counts as one. */
const quotaOf = ({ user }: ContainerWork): PostQuota => ({
  ...{ path: at(`${user}/content_publishing_limit`), usage: 'quota_usage', config: 'config', what: 'posts' },
  list: edgeOf(user, false),
});

/** Accounts that came by Facebook Login have what the other login lacks: labels of partnerships, deletion, taps on links. */
export const isByFacebook = ({ tables }: Pick<Bound, 'tables'>): boolean => tables.appOf === 'facebook';

/** What Instagram refuses of a request, found before anything is made; null: nothing. */
const refusalOf = (bound: Bound, { media, overrides }: PublishRequest): Failure | null => {
  if (media.length === 0) return failureOf('content', null, 'Instagram has no posts of text alone');
  const other = media.find(({ kind, contentType }) => kind === 'image' && contentType !== 'image/jpeg');
  if (other !== undefined) {
    return failureOf(
      'media',
      null,
      `Instagram takes pictures as JPEG alone, and not ${other.contentType}`,
      other.mediaId,
    );
  }
  const { locationId } = overrides;
  if (typeof locationId === 'string' && locationId.trim() !== '' && !isMediaId(locationId.trim())) {
    return failureOf('content', null, 'locationId is not the id of a page of a place');
  }
  // A post without the label would hide what its author wants to disclose.
  return overrides.paidPartnership === true && !isByFacebook(bound)
    ? failureOf('forbidden', null, 'Instagram takes paidPartnership of accounts that are connected by Facebook')
    : null;
};

export const publish =
  (bound: Bound): PlatformAdapter['publish'] =>
  async (request, steps) => {
    const { client, clock } = bound;
    const [subject, user] = [subjectOf(request), request.account.externalId];
    steps.signal.throwIfAborted();
    const refusal = refusalOf(bound, request);
    if (refusal !== null) return { kind: 'failed', failure: refusal };
    const work = { bound, subject, user, signal: steps.signal };
    const container = await chosenContainer(containers, work, request, steps, {
      post: postOf(request),
      none: () => noneLeft(work, quotaOf(work)),
      publishedAs: publishedAs(bound, request),
    });
    if (container.kind !== 'container') return container;
    const open = await client.open(subject, steps.signal);
    steps.signal.throwIfAborted();
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    const signal = await steps.boundary(containerCrossing(contentOf(request), container.id, clock()));
    if (signal.aborted) return publishTooLate;
    const answer = await client.once(open, subject, callOf(user, container), signal);
    const isHidden = answer.kind === 'refused' && answer.row.means === 'gone';
    // What is a moment old may not be found, and may be out all the same.
    if (isHidden || mayBeOut(answer, container)) {
      return { kind: 'unknown', failure: unknown('the container may have been published') };
    }
    if (answer.kind !== 'ok') return behindBoundary(answer, clock());
    const externalId = madeBy(answer);
    if (externalId === null) return noIdOfPost;
    const publishedAt = new Date(clock()).toISOString();
    const permalink = await permalinkAt(bound, subject, at(externalId), signal);
    return { kind: 'published', externalId, permalink, publishedAt };
  };

const mayComment = /^instagram_(?:business_)?manage_comments$/;

/** Below the post, as the account itself. A story has none. */
export const comment =
  (bound: Bound): PlatformAdapter['comment'] =>
  async (request, signal) => {
    if (signal.aborted) return commentTooLate;
    const { client, clock } = bound;
    const { account, externalId, content: message } = request;
    if (!isMediaId(externalId)) return { kind: 'failed', failure: isNoPost.failure };
    if (!account.scopes.some((one) => mayComment.test(one))) {
      return noComment('10', 'the connection has no permission to comment');
    }
    const subject = subjectOf(request);
    const open = await client.open(subject, signal);
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    if (signal.aborted) return commentTooLate;
    const ask: Ask = { method: 'POST', path: at(`${externalId}/comments`), fields: { message } };
    const answer = await client.once(open, subject, ask, signal);
    return commentBy(answer, clock());
  };

/** PyPI `facebook_business` 26.0.3: with Facebook Login alone. */
export const removePost = (bound: Bound): NonNullable<PlatformAdapter['removePost']> =>
  removalBy(bound, isMediaId, (id) => ({ method: 'DELETE', path: at(id) }), isGone);
