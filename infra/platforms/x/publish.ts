import type { CommentOutcome, PlatformAdapter } from '#contracts/ports/platform.ts';
import {
  beforeBoundary,
  behindBoundary,
  behindComment,
  commentTooLate,
  failureOf,
  noIdOfPost,
  type OkAnswer,
  publishTooLate,
} from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { removalBy } from '../kit/removal.ts';
import { subjectOf } from '../kit/upload.ts';
import { textIn } from '../shared/members.ts';
import { boundaryOf } from './find.ts';
import { type MediaSettings, uploadAll } from './media.ts';
import { linkTo, postOf, refusalOf, replyOf } from './post.ts';

/** Posts, segments of threads and first comments: one create call an attempt. X has no key that makes a second the same. */

const isPostId = (id: string): boolean => /^\d{1,19}$/.test(id);

/** Null: the answer has none. */
const madeBy = ({ body }: OkAnswer): string | null => {
  const id = textIn(body.data, 'id');
  return id !== null && isPostId(id) ? id : null;
};

export const publish =
  (bound: Bound, settings: MediaSettings): PlatformAdapter['publish'] =>
  async (request, steps) => {
    const { client, clock } = bound;
    const subject = subjectOf(request);
    steps.signal.throwIfAborted();
    const refusal = refusalOf(request);
    if (refusal !== null) return { kind: 'failed', failure: failureOf('content', null, refusal) };
    const ids = await uploadAll(bound, settings, { request, steps });
    if ('kind' in ids) return ids;
    const json = postOf(request, ids);
    const open = await client.open(subject, steps.signal);
    steps.signal.throwIfAborted();
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    const signal = await steps.boundary(boundaryOf(request, ids, clock()));
    if (signal.aborted) return publishTooLate;
    const answer = await client.once(open, subject, { method: 'POST', path: '/2/tweets', json }, signal);
    client.tellLimits(subject, answer);
    if (answer.kind !== 'ok') return behindBoundary(answer, clock());
    const externalId = madeBy(answer);
    if (externalId === null) return noIdOfPost;
    const publishedAt = new Date(clock()).toISOString();
    return { kind: 'published', externalId, permalink: linkTo(request, externalId), publishedAt };
  };

/** Costs one call of the account's budget. X may refuse replies of an app, and then only the comment fails. */
export const comment =
  ({ client, clock }: Bound): PlatformAdapter['comment'] =>
  async (request, signal): Promise<CommentOutcome> => {
    if (signal.aborted) return commentTooLate;
    const subject = subjectOf(request);
    const open = await client.open(subject, signal);
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    if (signal.aborted) return commentTooLate;
    const json = replyOf(request.content, request.externalId);
    const answer = await client.once(open, subject, { method: 'POST', path: '/2/tweets', json }, signal);
    client.tellLimits(subject, answer);
    if (answer.kind !== 'ok') return behindComment(answer, clock());
    const externalId = madeBy(answer);
    return externalId === null ? noIdOfPost : { kind: 'posted', externalId };
  };

export const removePost = (bound: Bound): NonNullable<PlatformAdapter['removePost']> =>
  removalBy(bound, isPostId, (id) => ({ method: 'DELETE', path: `/2/tweets/${id}` }));
