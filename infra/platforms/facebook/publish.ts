import type { NativeScheduler, PlatformAdapter, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import {
  beforeBoundary,
  behindBoundary,
  commentTooLate,
  failureOf,
  noIdOfPost,
  publishTooLate,
  refusedTime,
} from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { askAbout } from '../kit/own-posts.ts';
import { subjectOf, wholeOf } from '../kit/upload.ts';
import { at, commentBy, hourMs, noComment, reading } from '../meta/graph.ts';
import { textIn } from '../shared/members.ts';
import { boundaryOf, fateOf, processingOf } from './find.ts';
import { uploaded } from './media.ts';
import { type Fields, fieldsOf, isVideo, refusalOf, shownOf, type Way, wayOf } from './post.ts';
import { commentScope, isPostId } from './tables.ts';

/** Posts, reels, stories and first comments: files first, which nobody sees, and then one call an attempt. */

export const badTime = '100/scheduled_publish_time';

/** The call that makes the post, and the picture by which a video of the feed is shown. */
const askOf = async (request: PublishRequest, way: Way, fields: Fields, session = ''): Promise<Ask> => {
  const { account, cover } = request;
  const query = isVideo(way) ? { upload_phase: 'finish' } : {};
  const ask = { method: 'POST', path: at(`${account.externalId}/${way}`), query } as const;
  if (way !== 'videos') return { ...ask, fields };
  const whole = { ...fields, upload_session_id: session };
  if (cover === null) return { ...ask, fields: whole };
  return { ...ask, form: { fields: whole, name: 'thumb', type: cover.contentType, file: await wholeOf(cover) } };
};

/** @param dueAt ISO 8601, when Facebook publishes it; null: at once */
const cross = async (bound: Bound, request: PublishRequest, steps: PublishSteps, dueAt: string | null) => {
  const { client, clock } = bound;
  const subject = subjectOf(request);
  steps.signal.throwIfAborted();
  const refusal = refusalOf(request);
  if (refusal !== null) return { kind: 'failed', failure: failureOf('content', null, refusal) } as const;
  const off = () => (dueAt === null ? null : refusedTime('facebook', badTime, dueAt, clock()));
  const tooSoon = off();
  if (tooSoon !== null) return tooSoon;
  const way = wayOf(request);
  const files = await uploaded({ bound, request, steps }, way, dueAt !== null);
  if ('kind' in files) return files;
  const ids = files.map(({ id }) => id);
  const ask = await askOf(request, way, fieldsOf(request, way, ids, dueAt), files[0]?.session);
  // The files may have taken until the time of the post.
  const nowTooSoon = off();
  if (nowTooSoon !== null) return nowTooSoon;
  const open = await client.open(subject, steps.signal);
  steps.signal.throwIfAborted();
  if (open.kind !== 'open') return beforeBoundary(open, clock());
  const signal = await steps.boundary(boundaryOf(request, ids, clock()));
  if (signal.aborted) return publishTooLate;
  const answer = await client.once(open, subject, ask, signal);
  if (answer.kind !== 'ok') return behindBoundary(answer, clock());
  return { kind: 'made', way, files, answer } as const;
};

/** Without an answer the post is out all the same. */
const shownNow = async (bound: Bound, request: PublishRequest, id: string) => {
  const ask = reading(id, { fields: 'permalink_url,created_time' });
  const answer = await askAbout(bound, request, ask).catch(() => null);
  return shownOf(request, answer?.kind === 'ok' ? answer.body : {}, id, bound.clock());
};

export const publish =
  (bound: Bound): PlatformAdapter['publish'] =>
  async (request, steps) => {
    const made = await cross(bound, request, steps, null);
    if (made.kind === 'outside_window') return { kind: 'failed', failure: made.failure };
    if (made.kind !== 'made') return made;
    const { way, files, answer } = made;
    if (isVideo(way)) {
      // A success says that Facebook has it: what becomes of it the video itself says.
      const id = files[0]?.id ?? '';
      const fate = await fateOf(bound, request, id, true, bound.clock() - hourMs);
      if (fate.kind === 'present') return { ...fate, kind: 'published' };
      if (fate.kind === 'failed') return fate;
      return { kind: 'accepted', ...processingOf(bound, id) };
    }
    const id = textIn(answer.body, 'post_id') ?? textIn(answer.body, 'id') ?? '';
    if (!isPostId(id)) return noIdOfPost;
    const shown = way === 'feed' ? await shownNow(bound, request, id) : shownOf(request, {}, id, bound.clock());
    return { kind: 'published', ...shown };
  };

export const handOver =
  (bound: Bound): NativeScheduler['handOver'] =>
  async (request, steps) => {
    const made = await cross(bound, request, steps, request.dueAt);
    if (made.kind !== 'made') return made;
    const { way, files, answer } = made;
    const nativeId = isVideo(way) ? (files[0]?.id ?? '') : (textIn(answer.body, 'id') ?? '');
    return isPostId(nativeId) ? { kind: 'handed_over', nativeId } : noIdOfPost;
  };

/** By the page itself. It needs a permission that owners may leave out. */
export const comment =
  ({ client, clock }: Bound): PlatformAdapter['comment'] =>
  async (request, signal) => {
    if (signal.aborted) return commentTooLate;
    const { account, externalId, content: message } = request;
    if (!account.scopes.includes(commentScope)) {
      return noComment('200', `the connection has no permission to comment (${commentScope})`);
    }
    const subject = subjectOf(request);
    const open = await client.open(subject, signal);
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    if (signal.aborted) return commentTooLate;
    const ask: Ask = { method: 'POST', path: at(`${externalId}/comments`), fields: { message } };
    const answer = await client.once(open, subject, ask, signal);
    return commentBy(answer, clock());
  };
