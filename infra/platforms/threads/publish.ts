import type {
  CommentOutcome,
  PlatformAdapter,
  PublishOutcome,
  PublishRequest,
  PublishSteps,
} from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import {
  beforeBoundary,
  behindBoundary,
  behindComment,
  commentTooLate,
  failureOf,
  type NetworkAnswer,
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
import { built, type Container, type ContainerWork, readyContainer, statusOf } from './containers.ts';
import { boundaryOf, containerIn, publishedAs } from './find.ts';
import { noneLeft } from './quota.ts';

/** Posts, segments of threads and first comments: a container, and one call an attempt that publishes it. */

/** Threads was seen not to know a container that it has just called finished. */
const settleMs = 2_000;
const maxContainers = 4;

/** Null: the answer has none. */
const madeBy = ({ body }: OkAnswer): string | null => {
  const id = textIn(body, 'id');
  return id !== null && isMediaId(id) ? id : null;
};

const callOf = (user: string, { id }: Container): Ask => ({
  ...{ method: 'POST', path: at(`${user}/threads_publish`), fields: { creation_id: id } },
});

interface Chosen extends Container {
  readonly kind: 'container';
  /** A call with it was lost, so that a refusal may mean that it is out. */
  readonly wasLost: boolean;
}

type Published = Extract<PublishOutcome, { readonly kind: 'published' }>;

/**
 * The container of this attempt. One whose call was lost is used again as long as it could be published: it is out at most
 * once, and another one beside it might be out twice. One that Threads refused, which then made nothing, is replaced.
 */
const chosen = async (
  work: ContainerWork,
  request: PublishRequest,
  steps: PublishSteps,
): Promise<Chosen | Published | Failed> => {
  const { bound, signal } = work;
  const build = async (isAnew: boolean): Promise<Chosen | Failed> => {
    const none = await noneLeft(work, (request.thread?.replyTo ?? null) !== null);
    signal.throwIfAborted();
    const ready = none ?? (await readyContainer(work, request, steps, isAnew));
    return 'kind' in ready ? ready : { kind: 'container', id: ready.id, wasLost: false };
  };
  const crossings = request.checkpoints.filter(({ step }) => step === 'boundary');
  const id = containerIn(crossings.at(-1)?.data ?? null);
  if (id === null) return build(false);
  const [first, ...others] = crossings.filter(({ data }) => containerIn(data) === id);
  const wasLost = [first, ...others].some((one) => one?.madeNothing !== true);
  const status = await statusOf(work, id);
  signal.throwIfAborted();
  switch (status.kind) {
    case 'published': {
      const found = await publishedAs(bound, request, Date.parse(textIn(first?.data, 'at') ?? ''));
      return found.kind === 'present' ? { ...found, kind: 'published' } : { kind: 'container', id, wasLost: true };
    }
    case 'broken':
      return build(true);
    case 'working':
      return { kind: 'deferred', failure: failureOf('processing', null, null) };
    case 'finished':
    case 'gone': {
      const containers = new Set(crossings.map(({ data }) => containerIn(data))).size;
      return wasLost || containers >= maxContainers ? { kind: 'container', id, wasLost } : build(true);
    }
    default:
      return beforeBoundary(status, bound.clock());
  }
};

/** What Threads refuses of a request, found before anything is made; null: nothing. */
const refusalOf = ({ overrides, thread }: PublishRequest): string | null => {
  const quoted = thread === null || thread.index === 0 ? overrides.quotePostId : null;
  const isId = typeof quoted !== 'string' || quoted === '' || isMediaId(quoted.trim());
  return isId ? null : 'quotePostId is not the id of a post on Threads';
};

/** A container that was published by a call that was lost is refused as one that is not there. */
const isOut = (answer: NetworkAnswer, { wasLost }: Chosen): boolean =>
  wasLost && answer.kind === 'refused' && ['invalid_content', 'media', 'transient'].includes(answer.failure.category);

export const publish =
  (bound: Bound): PlatformAdapter['publish'] =>
  async (request, steps) => {
    const { client, clock, pause } = bound;
    const [subject, user] = [subjectOf(request), request.account.externalId];
    steps.signal.throwIfAborted();
    const refusal = refusalOf(request);
    if (refusal !== null) return { kind: 'failed', failure: failureOf('content', null, refusal) };
    const container = await chosen({ bound, subject, user, signal: steps.signal }, request, steps);
    if (container.kind !== 'container') return container;
    await pause(settleMs, steps.signal);
    const open = await client.open(subject, steps.signal);
    steps.signal.throwIfAborted();
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    const signal = await steps.boundary(boundaryOf(request, container.id, clock()));
    if (signal.aborted) return publishTooLate;
    const answer = await client.once(open, subject, callOf(user, container), signal);
    if (isOut(answer, container)) return { kind: 'unknown', failure: unknown('the container may have been published') };
    if (answer.kind !== 'ok') return behindBoundary(answer, clock());
    const externalId = madeBy(answer);
    if (externalId === null) return noIdOfPost;
    const publishedAt = new Date(clock()).toISOString();
    const permalink = await permalinkOf(bound, request, externalId, signal);
    return { kind: 'published', externalId, permalink, publishedAt };
  };

/**
 * Threads alone knows it. Without an answer, and where no call can be made, the post is out all the same, and its figures
 * bring the permalink.
 */
const permalinkOf = async ({ client }: Bound, request: PublishRequest, id: string, signal: AbortSignal) => {
  const ask = { method: 'GET', path: at(id), query: { fields: 'id,permalink' } } as const;
  const answer = await client.call(subjectOf(request), ask, signal).catch(() => null);
  return answer?.kind === 'ok' ? textIn(answer.body, 'permalink') : null;
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
    const post = { content, overrides: {}, media: [], checkpoints: [], thread };
    const prepared = async (): Promise<Container | Failed> =>
      (await noneLeft(work, true)) ??
      built(work, post, { checkpoint: async () => undefined }, boundaryDeadlineMs * forContainer);
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
