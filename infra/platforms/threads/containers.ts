import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import type {
  ContainedPost,
  ContainerFields,
  ContainerForms,
  ContainerStatus,
  ContainerWork,
  MadeContainer,
} from '../kit/containers.ts';
import { failureOf, type NetworkAnswer, type NotOk } from '../kit/errors.ts';
import { at, isMediaId } from '../meta/graph.ts';
import { textIn } from '../shared/members.ts';
import { isGone, isNotFound } from './tables.ts';

/** The containers of Threads: what it gets of a post, and what it says of how far one is. */

/** What a container is made of: a post, a segment, a comment. */
export type Post = Pick<PublishRequest, 'content' | 'overrides' | 'thread' | 'media'>;

/** Looks, and calls with the post before, until what was made a moment ago must be known. */
const patience = 5;
const patienceMs = 5_000;

const text = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');

/** What Threads gets of a post beside its files. Only the head of a thread has settings. */
const wordsOf = ({ content, overrides, thread, media }: Post): ContainerFields => {
  const isHead = thread === null || thread.index === 0;
  const all = {
    text: content === '' && media.length > 0 ? '' : content,
    reply_to_id: thread?.replyTo?.parent ?? '',
    quote_post_id: isHead ? text(overrides.quotePostId) : '',
    reply_control: isHead ? text(overrides.replyControl) : '',
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
};

const fileOf = (media: PublishMedia): ContainerFields => ({
  ...(media.kind === 'video' ? { media_type: 'VIDEO', video_url: media } : { media_type: 'IMAGE', image_url: media }),
  ...(media.altText === null || media.altText === '' ? {} : { alt_text: media.altText }),
});

export const postOf = (post: Post): ContainedPost => {
  const [only = null, ...others] = post.media;
  if (only !== null && others.length === 0) {
    return { children: [], whole: () => ({ ...fileOf(only), ...wordsOf(post) }) };
  }
  return {
    children: post.media.map((one) => ({ ...fileOf(one), is_carousel_item: 'true' })),
    whole: (children) => ({
      ...(only === null ? { media_type: 'TEXT' } : { media_type: 'CAROUSEL', children: children.join(',') }),
      ...wordsOf(post),
    }),
  };
};

const kinds = { FINISHED: 'finished', IN_PROGRESS: 'working', PUBLISHED: 'published' } as const;

/** "Troubleshooting": how far a container is. */
const statusOf = async (
  { bound, subject, signal }: Omit<ContainerWork, 'user'>,
  id: string,
): Promise<ContainerStatus | NotOk> => {
  const ask = { method: 'GET', path: at(id), query: { fields: 'id,status,error_message' } } as const;
  const answer = await bound.client.call(subject, ask, signal);
  if (answer.kind !== 'ok') {
    const said = answer.kind === 'refused' ? (answer.failure.platformMessage ?? '') : '';
    // A container that became a post has no status any more.
    if (/nonexisting field \(status\)/i.test(said)) return { kind: 'published' };
    return isGone(answer) ? { kind: 'gone' } : answer;
  }
  const status = textIn(answer.body, 'status') ?? '';
  if (status === 'ERROR' || status === 'EXPIRED') {
    return { kind: 'broken', code: textIn(answer.body, 'error_message') || status };
  }
  const kind = Object.entries(kinds).find(([name]) => name === status)?.[1];
  return kind === undefined ? { kind: 'silent', reason: 'the answer does not say how far the container is' } : { kind };
};

type Made = Readonly<Record<string, string>>;

/** A post of a moment ago may not be known everywhere yet. */
const make = async (work: ContainerWork, fields: Made): Promise<MadeContainer | NotOk> => {
  const { bound, subject, user, signal } = work;
  const ask: Ask = { method: 'POST', path: at(`${user}/threads`), fields };
  const isReply = fields.reply_to_id !== undefined;
  let answer = await bound.client.call(subject, ask, signal);
  for (let again = 1; isReply && again < patience && isNotFound(answer); again += 1) {
    await bound.pause(patienceMs, signal);
    answer = await bound.client.call(subject, ask, signal);
  }
  if (answer.kind !== 'ok') return isNotFound(answer) ? missing(work, answer, fields) : answer;
  const id = textIn(answer.body, 'id') ?? '';
  return isMediaId(id) ? { id } : { kind: 'silent', reason: 'the answer has no id of the container' };
};

/** The post to reply to or to quote is gone, or it is not known yet. */
const missing = async ({ bound, subject, signal }: ContainerWork, answer: NotOk, fields: Made): Promise<NotOk> => {
  const { reply_to_id: parent, quote_post_id: quoted } = fields;
  const look = (id: string): Promise<NetworkAnswer> =>
    bound.client.call(subject, { method: 'GET', path: at(id), query: { fields: 'id' } }, signal);
  const isLost = parent === undefined ? quoted !== undefined : isGone(await look(parent));
  if (answer.kind !== 'refused' || !isLost) return answer;
  const said = `Threads does not have the post to ${parent === undefined ? 'quote' : 'reply to'}`;
  return { ...answer, row: { means: 'gone' }, failure: failureOf('gone', answer.failure.platformCode, said) };
};

export const containers: ContainerForms = {
  ...{ make, statusOf, unfound: { looks: patience, then: 'anew' }, maxBuilds: 3 },
  said: (code) => `Threads could not make the post: ${code}`,
  // Children of a carousel that ended are among it.
  mayPass: /^(?:EXPIRED|UNKNOWN|ERROR|FAILED_\w+)$|\/(?:4279004|2207052)$/,
};
