import { createHash } from 'node:crypto';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { Json, PublishMedia, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import { failureOf, type NetworkAnswer, type NotOk } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { isUploadFailed, type Look, type Uploader, type UploadItem, upload } from '../kit/upload.ts';
import { at, isMediaId } from '../meta/graph.ts';
import { textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { isGone, isNotFound } from './tables.ts';

/**
 * Containers: what Threads makes of a post, and of each file of a carousel, before it publishes it. A container is
 * invisible, ends after 24 hours, and is published once. Threads fetches the files from their addresses.
 */

export type Container = { readonly id: string };

/** What a container is made of: a post, a segment, a comment. */
export type Post = Pick<PublishRequest, 'content' | 'overrides' | 'thread' | 'media' | 'checkpoints'>;

export interface ContainerWork {
  readonly bound: Bound;
  readonly subject: NetworkCall['subject'];
  /** The account, by its id on the network. */
  readonly user: string;
  readonly signal: AbortSignal;
}

const containerMs = 86_400_000;
/** Threads may begin to fetch a file some time after the call. */
const addressMs = 6 * 3_600_000;
/** Texts and pictures are ready within seconds. */
const [everyMs, everyMsOfVideo] = [2_000, 10_000];
/** Looks, and calls with the post before, until what was made a moment ago must be known. */
const patience = 5;
const patienceMs = 5_000;

export const hashOf = (...parts: readonly Json[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex');

const text = (value: Json | undefined): string => (typeof value === 'string' ? value.trim() : '');

type Fields = Readonly<Record<string, string>>;

/** What Threads gets of a post beside its files. Only the head of a thread has settings. */
const wordsOf = ({ content, overrides, thread, media }: Post): Fields => {
  const isHead = thread === null || thread.index === 0;
  const all = {
    text: content === '' && media.length > 0 ? '' : content,
    reply_to_id: thread?.replyTo?.parent ?? '',
    quote_post_id: isHead ? text(overrides.quotePostId) : '',
    reply_control: isHead ? text(overrides.replyControl) : '',
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
};

const fileOf = async (media: PublishMedia): Promise<Fields> => {
  const { kind, altText } = media;
  const address = await media.url(addressMs);
  const file =
    kind === 'video' ? { media_type: 'VIDEO', video_url: address } : { media_type: 'IMAGE', image_url: address };
  return { ...file, ...(altText === null || altText === '' ? {} : { alt_text: altText }) };
};

interface Making extends UploadItem {
  readonly file: PublishMedia | null;
  readonly fields: Fields;
}

const making = (name: string, file: PublishMedia | null, fields: Fields): Making => ({
  ...{ name, mediaId: file?.mediaId ?? null, bytes: 0, file, fields },
  sha256: hashOf(fields, file?.sha256 ?? null, file?.altText ?? null),
});

const makingOf = (post: Post, children: readonly string[]): Making => {
  const [only = null, ...others] = post.media;
  if (only !== null && others.length === 0) return making('post', only, wordsOf(post));
  const type = only === null ? { media_type: 'TEXT' } : { media_type: 'CAROUSEL', children: children.join(',') };
  return making('post', null, { ...type, ...wordsOf(post) });
};

export type Status =
  | { readonly kind: 'finished' | 'working' | 'published' | 'gone' }
  /** It can never be published. `code`: the network's word. */
  | { readonly kind: 'broken'; readonly code: string };

const kinds = { FINISHED: 'finished', IN_PROGRESS: 'working', PUBLISHED: 'published' } as const;

/** "Troubleshooting": how far a container is. */
export const statusOf = async (
  { bound, subject, signal }: Omit<ContainerWork, 'user'>,
  id: string,
): Promise<Status | NotOk> => {
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

/** The call makes nothing visible, so it may be made again. A post of a moment ago may not be known everywhere yet. */
const made = async (work: ContainerWork, fields: Fields): Promise<Container | NotOk> => {
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
const missing = async ({ bound, subject, signal }: ContainerWork, answer: NotOk, fields: Fields): Promise<NotOk> => {
  const { reply_to_id: parent, quote_post_id: quoted } = fields;
  const look = (id: string): Promise<NetworkAnswer> =>
    bound.client.call(subject, { method: 'GET', path: at(id), query: { fields: 'id' } }, signal);
  const isLost = parent === undefined ? quoted !== undefined : isGone(await look(parent));
  if (answer.kind !== 'refused' || !isLost) return answer;
  const said = `Threads does not have the post to ${parent === undefined ? 'quote' : 'reply to'}`;
  return { ...answer, row: { means: 'gone' }, failure: failureOf('gone', answer.failure.platformCode, said) };
};

const broken = (code: string): Look => ({ kind: 'broken', code, said: `Threads could not make the post: ${code}` });

const makerOf = (work: ContainerWork, { file }: Making): Uploader<Container, Making> => {
  let missed = 0;
  return {
    everyMs: file?.kind === 'video' ? everyMsOfVideo : everyMs,
    start: async ({ fields }) => {
      const own = await made(work, { ...(file === null ? {} : await fileOf(file)), ...fields });
      if ('kind' in own) return own;
      return { kind: 'started', own, until: new Date(work.bound.clock() + containerMs).toISOString() };
    },
    look: async ({ id }): Promise<Look | NotOk> => {
      const status = await statusOf(work, id);
      switch (status.kind) {
        case 'finished':
        case 'published':
          return { kind: 'ready' };
        case 'broken':
          return broken(status.code);
        case 'gone':
          missed += 1;
          return missed < patience ? { kind: 'wait', ms: null } : broken('EXPIRED');
        case 'working':
          return { kind: 'wait', ms: null };
        default:
          return status;
      }
    },
  };
};

/** All children of a container are ready before it is made, and then it is itself. @param waitMs that each may take */
export const built = async (
  work: ContainerWork,
  post: Post,
  { checkpoint }: Pick<PublishSteps, 'checkpoint'>,
  waitMs = 600_000,
): Promise<Container | Failed> => {
  const { bound, signal } = work;
  const ready = (one: Making): Promise<Container | Failed> =>
    upload({ bound, request: post, steps: { checkpoint, signal }, waitMs }, one, makerOf(work, one));
  const children: string[] = [];
  for (const [place, media] of (post.media.length > 1 ? post.media : []).entries()) {
    const child = await ready(making(`child ${place}`, media, { is_carousel_item: 'true' }));
    if (isUploadFailed(child)) return child;
    children.push(child.id);
  }
  return ready(makingOf(post, children));
};

/** What another container may not meet: trouble of Threads' own servers, of the way to the file, children that ended. */
const mayPass = /^(?:EXPIRED|UNKNOWN|ERROR|FAILED_\w+)$|\/(?:4279004|2207052)$/;
const maxBuilds = 3;

/** The same, made anew where another may go well. @param isAnew nothing of an earlier attempt is used */
export const readyContainer = async (
  work: ContainerWork,
  post: Post,
  steps: PublishSteps,
  isAnew: boolean,
): Promise<Container | Failed> => {
  const checkpoint: PublishSteps['checkpoint'] = (step, data) => steps.checkpoint(step, data);
  for (let build = 1; ; build += 1) {
    const checkpoints = isAnew || build > 1 ? [] : post.checkpoints;
    const ready = await built(work, { ...post, checkpoints }, { checkpoint });
    if (!isUploadFailed(ready) || build >= maxBuilds) return ready;
    if (ready.kind !== 'failed' || !mayPass.test(ready.failure.platformCode ?? '')) return ready;
    await work.bound.pause(patienceMs, work.signal);
  }
};
