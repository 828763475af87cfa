import type { NativeScheduler, PlatformAdapter, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import {
  beforeBoundary,
  behindBoundary,
  behindComment,
  behindCover,
  commentTooLate,
  failureOf,
  type NetworkAnswer,
  noIdOfPost,
  offWindow,
  publishTooLate,
  refusedTime,
  unknown,
} from '../kit/errors.ts';
import { nearMs } from '../kit/native.ts';
import type { Bound } from '../kit/network.ts';
import { isGone, partOf } from '../kit/resumable.ts';
import { subjectOf, wholeOf } from '../kit/upload.ts';
import { type Members, textIn } from '../shared/members.ts';
import type { NotPublished } from '../shared/outcomes.ts';
import { boundaryOf, resultOf, type Seen, seenOf, videoOf } from './find.ts';
import { uploaded } from './media.ts';
import { refusalOf, resourceOf } from './post.ts';
import { isVideoId, manageScope, textAt } from './tables.ts';

/** Videos, first comments and thumbnails. A video is made by the last byte of its upload: that request is the boundary. */

export const badTime = 'invalidPublishAt';

type Made = { readonly kind: 'made'; readonly video: Members };
type Crossed = Made | NotPublished | ReturnType<typeof offWindow>;

/** Null: YouTube has no video. */
const crossedOf = (seen: Seen): Crossed | null => {
  if (seen.kind === 'video') return { kind: 'made', video: seen.video };
  if (seen.kind === 'absent') return null;
  return { kind: 'deferred', failure: seen.failure ?? failureOf('later', null, 'YouTube does not say what it has') };
};

/** A call of an earlier attempt that was lost is asked for before anything is sent. Null: it made nothing. */
const madeBefore = async (bound: Bound, request: PublishRequest): Promise<Crossed | null> => {
  const lost = request.checkpoints.findLast(({ step, madeNothing }) => step === 'boundary' && madeNothing !== true);
  return lost === undefined ? null : crossedOf(await seenOf(bound, request, lost));
};

const madeBy = (answer: NetworkAnswer, now: number): Crossed => {
  if (isGone(answer) || (answer.kind === 'ok' && answer.status === 308)) {
    return { kind: 'nothing_sent', failure: failureOf('later', null, 'the session did not take the last part') };
  }
  if (answer.kind !== 'ok') return behindBoundary(answer, now);
  return isVideoId(textIn(answer.body, 'id') ?? '') ? { kind: 'made', video: answer.body } : noIdOfPost;
};

/** @param dueAt ISO 8601, when YouTube makes it public; null: it is as it is set at once */
const cross = async (
  bound: Bound,
  request: PublishRequest,
  steps: PublishSteps,
  dueAt: string | null,
): Promise<Crossed> => {
  const { client, clock } = bound;
  const subject = subjectOf(request);
  steps.signal.throwIfAborted();
  const refusal = refusalOf(request);
  const [media] = request.media;
  if (refusal !== null || media === undefined) return { kind: 'failed', failure: failureOf('content', null, refusal) };
  const before = await madeBefore(bound, request);
  steps.signal.throwIfAborted();
  if (before !== null) return before;
  // After the question for a lost call, which may have been in time.
  const off = dueAt === null ? null : refusedTime('youtube', badTime, dueAt, clock());
  if (off !== null) return off;
  const ready = await uploaded({ bound, request, steps }, media, resourceOf(request, dueAt));
  if (ready.kind === 'made') {
    // Its owner may have deleted it since: it is looked for, and never made again.
    const failure = unknown(`YouTube does not show the video ${ready.id}`);
    return crossedOf(await videoOf(bound, request, ready.id)) ?? { kind: 'unknown', failure };
  }
  if (ready.kind !== 'ready') return ready;
  // YouTube publishes at once a video whose time is over.
  if (dueAt !== null && Date.parse(dueAt) - clock() < nearMs)
    return offWindow(badTime, 'the upload took until the time of the video');
  const last = await partOf(media, ready.own, ready.from, media.bytes, steps);
  const open = await client.open(subject, steps.signal);
  steps.signal.throwIfAborted();
  if (open.kind !== 'open') return beforeBoundary(open, clock());
  const signal = await steps.boundary(boundaryOf(bound, request, ready.own.session));
  if (signal.aborted) return publishTooLate;
  const answer = await client.once(open, subject, last, signal);
  return madeBy(answer, clock());
};

export const publish =
  (bound: Bound): PlatformAdapter['publish'] =>
  async (request, steps) => {
    const made = await cross(bound, request, steps, null);
    if (made.kind === 'outside_window') return { kind: 'failed', failure: made.failure };
    if (made.kind !== 'made') return made;
    const result = resultOf(bound, request, made.video);
    if (result.kind === 'present') return { ...result, kind: 'published' };
    return result.kind === 'processing' ? { ...result, kind: 'accepted' } : result;
  };

export const handOver =
  (bound: Bound): NativeScheduler['handOver'] =>
  async (request, steps) => {
    const made = await cross(bound, request, steps, request.dueAt);
    if (made.kind !== 'made') return made;
    return { kind: 'handed_over', nativeId: textIn(made.video, 'id') ?? '' };
  };

const noVideo = { kind: 'failed', failure: failureOf('gone', null, 'this is no id of a video') } as const;
const noPermission = (said: string | null) =>
  ({ kind: 'failed', failure: failureOf('noComment', 'insufficientPermissions', said) }) as const;

/** A top-level comment of the channel. It needs a permission that owners may leave out. */
export const comment =
  ({ client, clock }: Bound): PlatformAdapter['comment'] =>
  async (request, signal) => {
    if (signal.aborted) return commentTooLate;
    const { account, externalId: videoId, content: textOriginal } = request;
    if (!isVideoId(videoId)) return noVideo;
    if (!account.scopes.includes(manageScope)) return noPermission('the connection has no permission to comment');
    const subject = subjectOf(request);
    const ask: Ask = {
      ...{ method: 'POST', path: '/commentThreads', query: { part: 'snippet' } },
      json: { snippet: { channelId: account.externalId, videoId, topLevelComment: { snippet: { textOriginal } } } },
    };
    const open = await client.open(subject, signal, ask);
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    if (signal.aborted) return commentTooLate;
    const answer = await client.once(open, subject, ask, signal);
    if (answer.kind === 'refused' && answer.status === 403 && answer.failure.category === 'permission') {
      return noPermission(answer.failure.platformMessage);
    }
    if (answer.kind !== 'ok') return behindComment(answer, clock());
    const externalId = textAt(answer.body, 'snippet.topLevelComment.id') ?? textIn(answer.body, 'id');
    return externalId === null ? noIdOfPost : { kind: 'posted', externalId };
  };

/** A second call puts the same picture in the place of the first. */
export const setCover =
  ({ client, clock }: Bound): NonNullable<PlatformAdapter['afterStep']> =>
  async (request, signal) => {
    if (signal.aborted) return commentTooLate;
    const { externalId: videoId, cover } = request;
    if (!isVideoId(videoId)) return noVideo;
    const ask: Ask = {
      ...{ method: 'POST', path: '{uploads}/thumbnails/set', query: { videoId, uploadType: 'media' } },
      headers: { 'content-type': cover.contentType },
      bytes: await wholeOf(cover),
    };
    const answer = await client.call(subjectOf(request), ask, signal);
    // YouTube takes thumbnails from channels with a verified telephone number.
    return answer.kind === 'ok' ? { kind: 'done' } : behindCover(answer, clock());
  };
