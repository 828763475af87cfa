import type {
  AfterStepOutcome,
  CommentOutcome,
  HandOverOutcome,
  NativeScheduler,
  PlatformAdapter,
  PublishRequest,
  PublishSteps,
} from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { Ask } from '../kit/client.ts';
import {
  beforeBoundary,
  behindBoundary,
  behindComment,
  commentTooLate,
  failureOf,
  isNoPost,
  type NetworkAnswer,
  noIdOfPost,
  publishTooLate,
} from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { subjectOf } from '../kit/upload.ts';
import { type Members, membersOf, textIn } from '../shared/members.ts';
import type { NotPublished } from '../shared/outcomes.ts';
import { boundaryOf, isNotOk, processing, type Seen, seenOf, videoOf } from './find.ts';
import { partOf, uploaded } from './media.ts';
import { refusalOf, resourceOf, shownOf, stateOf } from './post.ts';
import { isVideoId, scopes } from './tables.ts';

/** Videos, first comments and thumbnails. A video is made by the last byte of its upload: that request is the boundary. */

/** YouTube publishes at once a video whose time is over: one that is as near is not sent. */
export const nearMs = 60_000;

type Made = { readonly kind: 'made'; readonly video: Members };
type OffWindow = Extract<HandOverOutcome, { readonly kind: 'outside_window' }>;
type Crossed = Made | NotPublished | OffWindow;

export const offWindow = (said: string): OffWindow => ({
  kind: 'outside_window',
  failure: failureOf('offWindow', 'invalidPublishAt', said),
});

const shown = async (bound: Bound, request: PublishRequest, id: string): Promise<Crossed> => {
  const video = await videoOf(bound, request, id);
  // YouTube has made it, and its owner may have deleted it since: it is looked for, and never made again.
  if (video === null)
    return { kind: 'unknown', failure: failureOf('unknown', null, `YouTube does not show the video ${id}`) };
  return isNotOk(video) ? beforeBoundary(video, bound.clock()) : { kind: 'made', video };
};

/** A call of an earlier attempt that was lost is asked for before anything is sent. Null: it made nothing. */
const madeBefore = async (bound: Bound, request: PublishRequest): Promise<Crossed | null> => {
  const lost = request.checkpoints.findLast(({ step, madeNothing }) => step === 'boundary' && madeNothing !== true);
  const seen: Seen = lost === undefined ? { kind: 'absent' } : await seenOf(bound, request, lost);
  if (seen.kind === 'video') return { kind: 'made', video: seen.video };
  if (seen.kind === 'absent') return null;
  return { kind: 'deferred', failure: seen.failure ?? failureOf('later', null, 'YouTube does not say what it has') };
};

const madeBy = (answer: NetworkAnswer, now: number): Crossed => {
  if (answer.kind === 'refused' && [404, 410].includes(answer.status)) {
    return { kind: 'nothing_sent', failure: failureOf('later', String(answer.status), 'the upload session has ended') };
  }
  if (answer.kind !== 'ok') return behindBoundary(answer, now);
  if (answer.status === 308) {
    return { kind: 'nothing_sent', failure: failureOf('later', '308', 'YouTube did not take the last part') };
  }
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
  const ready = await uploaded({ bound, request, steps }, media, resourceOf(request, dueAt));
  if (ready.kind === 'made') return shown(bound, request, ready.id);
  if (ready.kind !== 'ready') return ready;
  if (dueAt !== null && Date.parse(dueAt) - clock() < nearMs)
    return offWindow('the upload took until the time of the video');
  const last = await partOf(ready.media, ready.own, ready.from, ready.media.bytes, steps);
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
    const { video } = made;
    const state = stateOf(video, request.media[0]?.mediaId ?? null);
    if (state.kind === 'failed') return state;
    if (state.kind === 'processing') return { kind: 'accepted', ...processing(video, bound.clock()) };
    return { kind: 'published', ...shownOf(request, video, bound.clock()) };
  };

/** Why the scheduler does not take this time; null: it does. */
export const refusedTime = (dueAt: string, now: number): OffWindow | null => {
  const { minMs = 0, maxMs = 0 } = rulesOf('youtube').nativeWindow ?? {};
  const ahead = Date.parse(dueAt) - now;
  return ahead >= minMs && ahead <= maxMs ? null : offWindow('the time of the video is not within the window');
};

export const handOver =
  (bound: Bound): NativeScheduler['handOver'] =>
  async (request, steps) => {
    const refused = refusedTime(request.dueAt, bound.clock());
    // A call that was lost is asked for all the same: it may have been in time.
    if (refused !== null && !request.checkpoints.some(({ step }) => step === 'boundary')) return refused;
    const made = await cross(bound, request, steps, request.dueAt);
    if (made.kind !== 'made') return made;
    return { kind: 'handed_over', nativeId: textIn(made.video, 'id') ?? '' };
  };

const noPermission = (said: string | null) =>
  ({ kind: 'failed', failure: failureOf('noComment', 'insufficientPermissions', said) }) as const;

/** A top-level comment of the channel. It needs a permission that owners may leave out. */
export const comment =
  ({ client, clock }: Bound): PlatformAdapter['comment'] =>
  async (request, signal): Promise<CommentOutcome> => {
    if (signal.aborted) return commentTooLate;
    const { account, externalId: videoId, content: textOriginal } = request;
    if (!isVideoId(videoId)) return { kind: 'failed', failure: failureOf('gone', null, 'this is no id of a video') };
    if (!account.scopes.includes(scopes.manage)) return noPermission('the connection has no permission to comment');
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
    const externalId =
      textIn(membersOf(membersOf(answer.body.snippet)?.topLevelComment), 'id') ?? textIn(answer.body, 'id');
    return externalId === null ? noIdOfPost : { kind: 'posted', externalId };
  };

/** A second call puts the same picture in the place of the first. */
export const afterStep =
  ({ client, clock }: Bound): NonNullable<PlatformAdapter['afterStep']> =>
  async (request, signal): Promise<AfterStepOutcome> => {
    if (signal.aborted) return commentTooLate;
    const { externalId: videoId, cover } = request;
    if (!isVideoId(videoId)) return { kind: 'failed', failure: failureOf('gone', null, 'this is no id of a video') };
    const ask: Ask = {
      ...{ method: 'POST', path: '{uploads}/thumbnails/set', query: { videoId, uploadType: 'media' } },
      ...{
        headers: { 'content-type': cover.contentType },
        bytes: { path: await cover.file(), start: 0, end: cover.bytes },
      },
    };
    const answer = await client.call(subjectOf(request), ask, signal);
    if (answer.kind === 'ok') return { kind: 'done' };
    const { failure, ...outcome } = beforeBoundary(answer, clock());
    const { platformCode, platformMessage, category } = failure;
    // YouTube takes thumbnails from channels with a verified telephone number.
    const isForbidden = outcome.kind === 'failed' && category === 'permission';
    return { ...outcome, failure: isForbidden ? failureOf('noCover', platformCode, platformMessage) : failure };
  };

export const removePost =
  ({ client, clock }: Bound): NonNullable<PlatformAdapter['removePost']> =>
  async ({ account, externalId: id }, signal) => {
    if (!isVideoId(id)) return isNoPost;
    const ask = { method: 'DELETE', path: '/videos', query: { id } } as const;
    const answer = await client.call({ accountId: account.id, targetId: null }, ask, signal);
    if (answer.kind === 'ok' || (answer.kind === 'refused' && answer.row.means === 'gone')) return { kind: 'removed' };
    return { kind: 'not_removed', failure: beforeBoundary(answer, clock()).failure };
  };
