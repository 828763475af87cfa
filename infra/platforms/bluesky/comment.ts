import { createHash } from 'node:crypto';
import type { CommentOutcome, CommentRequest } from '#contracts/ports/platform.ts';
import { commentTooLate } from '../kit/errors.ts';
import { instantOf, textIn } from '../shared/members.ts';
import { failureOf, notReached, outcomeOf, unknown } from './errors.ts';
import { found } from './facets.ts';
import { tellLimits } from './limits.ts';
import type { BlueskyOptions } from './options.ts';
import { resolveHandles } from './people.ts';
import { findPost, partsOf, writePost } from './posts.ts';
import { recordOf } from './record.ts';
import type { SessionSecret } from './session.ts';
import { tidOf } from './tid.ts';

/**
 * A reply to the account's own post. Key and time follow from the post and the text, so a second try of the same comment
 * is the same record.
 */
export const commentOn = async (
  options: Pick<BlueskyOptions, 'http' | 'clock' | 'onLimits'>,
  secret: SessionSecret,
  { account, targetId, externalId, content }: CommentRequest,
  signal: AbortSignal,
): Promise<CommentOutcome> => {
  const { http, clock } = options;
  const subject = { accountId: account.id, targetId };
  const parts = partsOf(externalId);
  if (parts === null) return { kind: 'failed', failure: unknown('the post has no address on this network') };
  const post = await findPost(http, { service: secret.service, ...parts }, subject, signal);
  if (post.kind === 'absent') {
    const gone = {
      kind: 'refused',
      status: 400,
      error: 'RecordNotFound',
      message: 'The post is gone.',
      data: null,
      headers: {},
    } as const;
    return { kind: 'failed', failure: failureOf(gone) };
  }
  if (post.kind === 'undecided') {
    return { kind: 'deferred', failure: post.failure ?? notReached('the post could not be read') };
  }
  const createdAt =
    instantOf(Date.parse(textIn(post.value, 'createdAt') ?? '') + 1_000) ?? new Date(clock()).toISOString();
  const seed = createHash('sha256').update(`${externalId}\n${content}`).digest();
  const key = tidOf(Date.parse(createdAt), seed);
  const spans = found(content);
  const handles = spans.flatMap((one) => (one.kind === 'mention' ? [one.handle] : []));
  const dids = await resolveHandles(http, secret.service, handles, subject, signal);
  if (signal.aborted) return commentTooLate;
  const reply = { uri: post.uri, cid: post.cid };
  const record = recordOf({
    ...{ text: content, createdAt, found: spans, dids, media: [], card: null, labels: [] },
    replyTo: { root: reply, parent: reply },
  });
  const result = await writePost(http, secret, key, record, subject, signal);
  tellLimits(options, subject, result);
  if (result.kind !== 'ok') return outcomeOf(result, true, clock());
  const uri = textIn(result.data, 'uri');
  return uri === null
    ? { kind: 'unknown', failure: unknown('the answer has no address of the comment') }
    : { kind: 'posted', externalId: uri };
};
