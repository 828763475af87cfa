import type { CommentOutcome, PlatformAdapter, PublishRequest } from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import {
  built,
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
  behindComment,
  commentTooLate,
  failureOf,
  noIdOfPost,
  type OkAnswer,
  publishTooLate,
  unknown,
} from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { subjectOf } from '../kit/upload.ts';
import { at, isMediaId } from '../meta/graph.ts';
import { textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { containers, postOf } from './containers.ts';
import { contentOf, edgeOf, publishedAs } from './find.ts';

/** Posts, segments of threads and first comments: a container, and one call an attempt that publishes it. */

/** Threads was seen not to know a container that it has just called finished. */
const settleMs = 2_000;

/** Null: the answer has none. */
const madeBy = ({ body }: OkAnswer): string | null => {
  const id = textIn(body, 'id');
  return id !== null && isMediaId(id) ? id : null;
};

const callOf = (user: string, { id }: MadeContainer): Ask => ({
  ...{ method: 'POST', path: at(`${user}/threads_publish`), fields: { creation_id: id } },
});

/** `threads_publishing_limit`: later segments and comments are replies. */
const quotaOf = ({ user }: ContainerWork, isReply: boolean): PostQuota => ({
  ...{ path: at(`${user}/threads_publishing_limit`), list: edgeOf(user, isReply) },
  ...(isReply
    ? { usage: 'reply_quota_usage', config: 'reply_config', what: 'replies' }
    : { usage: 'quota_usage', config: 'config', what: 'posts' }),
});

/** What Threads refuses of a request, found before anything is made; null: nothing. */
const refusalOf = ({ overrides, thread }: PublishRequest): string | null => {
  const quoted = thread === null || thread.index === 0 ? overrides.quotePostId : null;
  const isId = typeof quoted !== 'string' || quoted === '' || isMediaId(quoted.trim());
  return isId ? null : 'quotePostId is not the id of a post on Threads';
};

export const publish =
  (bound: Bound): PlatformAdapter['publish'] =>
  async (request, steps) => {
    const { client, clock, pause } = bound;
    const [subject, user] = [subjectOf(request), request.account.externalId];
    steps.signal.throwIfAborted();
    const refusal = refusalOf(request);
    if (refusal !== null) return { kind: 'failed', failure: failureOf('content', null, refusal) };
    const work = { bound, subject, user, signal: steps.signal };
    const container = await chosenContainer(containers, work, request, steps, {
      post: postOf(request),
      none: () => noneLeft(work, quotaOf(work, (request.thread?.replyTo ?? null) !== null)),
      publishedAs: publishedAs(bound, request),
    });
    if (container.kind !== 'container') return container;
    await pause(settleMs, steps.signal);
    const open = await client.open(subject, steps.signal);
    steps.signal.throwIfAborted();
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    const signal = await steps.boundary(containerCrossing(contentOf(request), container.id, clock()));
    if (signal.aborted) return publishTooLate;
    const answer = await client.once(open, subject, callOf(user, container), signal);
    if (mayBeOut(answer, container))
      return { kind: 'unknown', failure: unknown('the container may have been published') };
    if (answer.kind !== 'ok') return behindBoundary(answer, clock());
    const externalId = madeBy(answer);
    if (externalId === null) return noIdOfPost;
    const publishedAt = new Date(clock()).toISOString();
    const permalink = await permalinkAt(bound, subject, at(externalId), signal);
    return { kind: 'published', externalId, permalink, publishedAt };
  };

/** Of the time of a try this share is for the container; the rest is for the call. */
const forContainer = 0.6;

/** A reply to the post. A try makes a container of its own: what it leaves behind is invisible, and ends by itself. */
export const comment =
  (bound: Bound): PlatformAdapter['comment'] =>
  async (request, signal): Promise<CommentOutcome> => {
    if (signal.aborted) return commentTooLate;
    const { client, clock, boundaryDeadlineMs } = bound;
    const { account, externalId, content } = request;
    const [subject, user] = [subjectOf(request), account.externalId];
    const work = { bound, subject, user, signal };
    const thread = { index: 1, of: 2, replyTo: { parent: externalId, head: externalId } };
    const post = postOf({ content, overrides: {}, media: [], thread });
    const steps = { checkpoint: async () => undefined, checkpoints: [] };
    const prepared = async (): Promise<MadeContainer | Failed> =>
      (await noneLeft(work, quotaOf(work, true))) ??
      built(containers, work, post, steps, boundaryDeadlineMs * forContainer);
    const container = await prepared().catch((error: unknown) => {
      // What is prepared ends with the time of the try.
      if (signal.aborted) return commentTooLate;
      throw error;
    });
    if ('kind' in container) return container;
    const open = await client.open(subject, signal);
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    if (signal.aborted) return commentTooLate;
    const answer = await client.once(open, subject, callOf(user, container), signal);
    if (answer.kind !== 'ok') return behindComment(answer, clock());
    const made = madeBy(answer);
    return made === null ? noIdOfPost : { kind: 'posted', externalId: made };
  };
