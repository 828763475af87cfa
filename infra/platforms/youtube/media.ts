import type { Checkpoint, PublishMedia, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import { beforeBoundary, failureOf, type NetworkAnswer, type NotOk } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { isUploadFailed, type KeepParts, subjectOf, type Uploader, upload } from '../kit/upload.ts';
import { type Members, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { hashOf } from './post.ts';
import { isVideoId } from './tables.ts';

/**
 * A video on its way to YouTube: developers.google.com/youtube, "Resumable uploads". A session takes the file in parts of one
 * size, and makes one video with its last byte; asked afterwards, it names that video. So the last part is the boundary call,
 * and no other session begins while this one may still answer.
 */

export type Session = {
  /** The address of the session, which takes the file without a token: it is secret. */
  readonly session: string;
  readonly partBytes: number;
  /** Id of the video that the session has made; null: none is known. */
  readonly made: string | null;
};

interface Work {
  readonly bound: Bound;
  readonly request: PublishRequest;
  readonly steps: PublishSteps;
}

/** Where a session is. */
export type Whereabouts =
  | { readonly kind: 'at'; readonly offset: number }
  | { readonly kind: 'made'; readonly video: Members }
  /** YouTube does not know the session any more. */
  | { readonly kind: 'gone' }
  | NotOk;

/** Parts are multiples of it. */
const unitBytes = 256 * 1_024;
const usualBytes = 8 * 1_024 * 1_024;
/** Of the last part, whose time is short. */
const maxLastBytes = 1_024 * 1_024;
/** Every fourth part is a checkpoint, and each costs its worker two pieces of memory that are freed late. */
const maxParts = 64;
/** YouTube does not say how long it keeps a session: it is asked, and none is given up by our clock. */
const keptMs = 365 * 86_400_000;

const lastBytes = (bytes: number, part: number): number => ((bytes - 1) % part) + 1;

export const partBytesOf = (bytes: number): number => {
  let part = Math.max(usualBytes, Math.ceil(bytes / maxParts / unitBytes) * unitBytes);
  while (lastBytes(bytes, part) > maxLastBytes) part -= unitBytes;
  return part;
};

const startOfLast = (bytes: number, part: number): number => bytes - lastBytes(bytes, part);

const offsetIn = (headers: Readonly<Record<string, string>>): number => {
  const last = /^bytes=0-(\d{1,15})$/.exec(headers.range ?? '')?.[1];
  return last === undefined ? 0 : Number(last) + 1;
};

const isGone = (answer: NetworkAnswer): boolean => answer.kind === 'refused' && [404, 410].includes(answer.status);

const whereIn = (answer: NetworkAnswer): Whereabouts => {
  if (isGone(answer)) return { kind: 'gone' };
  if (answer.kind !== 'ok') return answer;
  if (answer.status === 308) return { kind: 'at', offset: offsetIn(answer.headers) };
  return isVideoId(textIn(answer.body, 'id') ?? '')
    ? { kind: 'made', video: answer.body }
    : { kind: 'silent', reason: 'the session names no video' };
};

/** Asks a session what it has. */
export const whereIs = async (
  { client }: Pick<Bound, 'client'>,
  request: PublishRequest,
  session: string,
  signal: AbortSignal,
): Promise<Whereabouts> => {
  const bytes = request.media[0]?.bytes ?? 0;
  const headers = { 'content-range': `bytes */${bytes}` };
  return whereIn(
    await client.call(subjectOf(request), { method: 'PUT', path: session, headers, takes: [308] }, signal),
  );
};

/** A part of the file. The last one makes the video. */
export const partOf = async (
  media: PublishMedia,
  { session }: Pick<Session, 'session'>,
  start: number,
  end: number,
  steps: PublishSteps,
): Promise<Ask> => ({
  ...{ method: 'PUT', path: session, bytes: { path: await media.file(), start, end }, takes: [308] },
  headers: { 'content-type': media.contentType, 'content-range': `bytes ${start}-${end - 1}/${media.bytes}` },
  onSent: (bytes) => steps.moved(bytes),
});

/** Another session can be begun: no byte of the last part was sent to this one. */
const endedEarly = (): NotOk => ({
  ...{ kind: 'refused', status: 410, headers: {}, body: null, row: { means: 'later' }, named: 0 },
  failure: failureOf('later', '410', 'the upload session has ended'),
});

/** Sends all but the last part. Null: YouTube has them. */
const sendParts = async (
  { bound, request, steps }: Work,
  media: PublishMedia,
  own: Session,
  from: number,
  keep: KeepParts<Session>,
): Promise<NotOk | null> => {
  const last = startOfLast(media.bytes, own.partBytes);
  for (let at = from; at < last; ) {
    const ask = await partOf(media, own, at, Math.min(at + own.partBytes, last), steps);
    const found = whereIn(await bound.client.call(subjectOf(request), ask, steps.signal));
    steps.signal.throwIfAborted();
    if (found.kind === 'gone') return endedEarly();
    if (found.kind === 'made') return { kind: 'silent', reason: 'the session made a video of a part of the file' };
    if (found.kind !== 'at') return found;
    if (found.offset <= at) return { kind: 'silent', reason: 'the session did not take a part' };
    at = found.offset;
    await keep(own, at);
  }
  return null;
};

const uploaderOf = (work: Work, media: PublishMedia, resource: Members): Uploader<Session> => {
  const { bound, request, steps } = work;
  let isNew = false;
  return {
    start: async ({ bytes, contentType }) => {
      isNew = true;
      const answer = await bound.client.call(
        subjectOf(request),
        {
          ...{ method: 'POST', path: '{uploads}/videos', json: resource },
          query: { uploadType: 'resumable', part: 'snippet,status' },
          headers: { 'x-upload-content-type': contentType, 'x-upload-content-length': String(bytes) },
        },
        steps.signal,
      );
      if (answer.kind !== 'ok') return answer;
      const { location: session = '' } = answer.headers;
      if (!URL.canParse(session) || session.length > 8_192) {
        return { kind: 'silent', reason: 'the answer does not say where the file goes' };
      }
      const until = new Date(bound.clock() + keptMs).toISOString();
      return { kind: 'started', own: { session, partBytes: partBytesOf(bytes), made: null }, until };
    },
    send: async (_item, own, _sent, keep) => {
      if (isNew) return sendParts(work, media, own, 0, keep);
      const found = await whereIs(bound, request, own.session, steps.signal);
      steps.signal.throwIfAborted();
      if (found.kind === 'gone') return endedEarly();
      if (found.kind === 'at') return sendParts(work, media, own, found.offset, keep);
      if (found.kind !== 'made') return found;
      await keep({ ...own, made: textIn(found.video, 'id') }, media.bytes);
      return null;
    },
    secrets: ['session'],
  };
};

export interface Ready {
  readonly kind: 'ready';
  readonly own: Session;
  readonly media: PublishMedia;
  /** Byte with which the last part begins. */
  readonly from: number;
}

/** Says of a session that YouTube does not know it any more. */
const goneStep = 'session_gone';
const isStep =
  (step: string) =>
  (one: Checkpoint): boolean =>
    one.step === step;

/** All of the file but its last part is there, or the session has made the video. */
export const uploaded = async (
  work: Work,
  media: PublishMedia,
  resource: Members,
): Promise<Ready | { readonly kind: 'made'; readonly id: string } | Failed> => {
  const { bound, request, steps } = work;
  const gone = request.checkpoints.filter(isStep(goneStep)).length;
  const isResumed = request.checkpoints.some(isStep('file'));
  const item = { ...media, name: `${media.mediaId} ${gone}`, sha256: hashOf(media.sha256, resource) };
  const own = await upload(work, item, uploaderOf(work, media, resource));
  if (isUploadFailed(own)) return own;
  if (own.made !== null) return { kind: 'made', id: own.made };
  const from = startOfLast(media.bytes, own.partBytes);
  if (!isResumed) return { kind: 'ready', own, media, from };
  // An earlier worker may have come as far as the last byte.
  const found = await whereIs(bound, request, own.session, steps.signal);
  steps.signal.throwIfAborted();
  switch (found.kind) {
    case 'made':
      return { kind: 'made', id: textIn(found.video, 'id') ?? '' };
    case 'gone':
      await steps.checkpoint(goneStep, {});
      return { kind: 'deferred', failure: failureOf('later', '410', 'the upload session has ended', media.mediaId) };
    case 'at': {
      const missing = await sendParts(work, media, own, found.offset, async () => undefined);
      if (missing === null) return { kind: 'ready', own, media, from: Math.max(from, found.offset) };
      return beforeBoundary(missing, bound.clock());
    }
    default:
      return beforeBoundary(found, bound.clock());
  }
};
