import type { PlatformAdapter, PublishRequest } from '#contracts/ports/platform.ts';
import { beforeBoundary, behindBoundary, failureOf, noIdOfPost, publishTooLate } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { removalBy } from '../kit/removal.ts';
import { subjectOf } from '../kit/upload.ts';
import { textIn } from '../shared/members.ts';
import { sourceOf } from './media.ts';
import { boardOf, boundaryOf, isId, linkTo, pinOf } from './pin.ts';

/** A pin is made by one call. Pinterest has no key that makes a second call the same pin, and takes a pin twice. */

/** What Pinterest refuses of a request, found before a file is uploaded; null: nothing. */
const refusalOf = (request: PublishRequest): string | null => {
  if (!isId(boardOf(request))) return 'boardId is no id of a board';
  return request.media.length === 0 ? 'a pin needs a picture or a video' : null;
};

export const publish =
  (bound: Bound): PlatformAdapter['publish'] =>
  async (request, steps) => {
    const { client, clock } = bound;
    const subject = subjectOf(request);
    steps.signal.throwIfAborted();
    const refusal = refusalOf(request);
    if (refusal !== null) return { kind: 'failed', failure: failureOf('content', null, refusal) };
    const shown = await sourceOf(bound, { request, steps });
    steps.signal.throwIfAborted();
    if ('kind' in shown) return shown;
    const json = pinOf(request, shown.source);
    const open = await client.open(subject, steps.signal);
    steps.signal.throwIfAborted();
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    const signal = await steps.boundary(boundaryOf(request, shown.by, clock()));
    if (signal.aborted) return publishTooLate;
    const answer = await client.once(open, subject, { method: 'POST', path: '/pins', json }, signal);
    client.tellLimits(subject, answer);
    if (answer.kind !== 'ok') return behindBoundary(answer, clock());
    const externalId = textIn(answer.body, 'id');
    if (externalId === null || !isId(externalId)) return noIdOfPost;
    const publishedAt = new Date(clock()).toISOString();
    return { kind: 'published', externalId, permalink: linkTo(externalId), publishedAt };
  };

export const removePost = (bound: Bound): NonNullable<PlatformAdapter['removePost']> =>
  removalBy(bound, isId, (id) => ({ method: 'DELETE', path: `/pins/${id}` }));
