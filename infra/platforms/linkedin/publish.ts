import type { CommentOutcome, PlatformAdapter } from '#contracts/ports/platform.ts';
import {
  beforeBoundary,
  behindBoundary,
  behindComment,
  commentTooLate,
  failureOf,
  noIdOfPost,
  publishTooLate,
} from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { removalBy } from '../kit/removal.ts';
import { subjectOf } from '../kit/upload.ts';
import { textIn } from '../shared/members.ts';
import { boundaryOf } from './find.ts';
import { articleOf, uploadAll } from './media.ts';
import { linkTo, postOf, refusalOf } from './post.ts';
import { enc, isPostId } from './tables.ts';

/** Posts and first comments: one create call an attempt. LinkedIn has no key that makes a second the same. */

/** The answer to a create has no body: its id is in a header. Null: it has none. */
const madeBy = (headers: Readonly<Record<string, string | undefined>>): string | null => {
  const id = (headers['x-restli-id'] ?? headers['x-linkedin-id'] ?? '').replaceAll(/%3A/gi, ':');
  return isPostId(id) ? id : null;
};

export const publish =
  (bound: Bound): PlatformAdapter['publish'] =>
  async (request, steps) => {
    const { client, clock } = bound;
    const subject = subjectOf(request);
    steps.signal.throwIfAborted();
    const refusal = refusalOf(request);
    if (refusal !== null) return { kind: 'failed', failure: failureOf('content', null, refusal) };
    const ids = await uploadAll({ bound, request, steps });
    if ('kind' in ids) return ids;
    const article = await articleOf({ bound, request, steps });
    const json = postOf(request, ids, article);
    const open = await client.open(subject, steps.signal);
    steps.signal.throwIfAborted();
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    const signal = await steps.boundary(boundaryOf(request, ids, clock()));
    if (signal.aborted) return publishTooLate;
    const answer = await client.once(open, subject, { method: 'POST', path: '/posts', json }, signal);
    // "Content is a duplicate" names another post: it proves nothing of an earlier call, and is none of ours.
    if (answer.kind !== 'ok') return behindBoundary(answer, clock());
    const externalId = madeBy(answer.headers);
    if (externalId === null) return noIdOfPost;
    const publishedAt = new Date(clock()).toISOString();
    return { kind: 'published', externalId, permalink: linkTo(request, externalId), publishedAt };
  };

/** The text of a comment is plain: signs of the little text format are signs in it. */
export const comment =
  ({ client, clock }: Bound): PlatformAdapter['comment'] =>
  async (request, signal): Promise<CommentOutcome> => {
    if (signal.aborted) return commentTooLate;
    const subject = subjectOf(request);
    const open = await client.open(subject, signal);
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    if (signal.aborted) return commentTooLate;
    const { externalId: object, content: text, account } = request;
    const json = { actor: account.externalId, object, message: { text } };
    const path = `/socialActions/${enc(object)}/comments`;
    const answer = await client.once(open, subject, { method: 'POST', path, json }, signal);
    if (answer.kind !== 'ok') return behindComment(answer, clock());
    const externalId = textIn(answer.body, 'commentUrn') ?? textIn(answer.body, '$URN');
    return externalId === null ? noIdOfPost : { kind: 'posted', externalId };
  };

export const removePost = (bound: Bound): NonNullable<PlatformAdapter['removePost']> =>
  removalBy(bound, isPostId, (id) => ({
    ...{ method: 'DELETE', path: `/posts/${enc(id)}`, headers: { 'x-restli-method': 'DELETE' } },
  }));
