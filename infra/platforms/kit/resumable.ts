import type { PublishMedia, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import type { Members } from '../shared/members.ts';
import type { Ask } from './client.ts';
import { failureOf, type NetworkAnswer, type NotOk } from './errors.ts';
import type { Bound } from './network.ts';
import { callFor, type FileWork, type KeepParts, subjectOf, type Uploader } from './upload.ts';

/**
 * A file that a session takes in parts of one size, by `Content-Range`, and that is whole with the last byte (Google's
 * "Resumable uploads"). A network that shows it then has the last part for its boundary call: it is not sent here.
 */

export type UploadSession = {
  /** The address of the session, which takes the file without a token: it is secret. */
  readonly session: string;
  readonly partBytes: number;
};

/** Where a session is. */
export type Whereabouts =
  | { readonly kind: 'at'; readonly offset: number }
  /** It is whole, and this is what the network has made of it. */
  | { readonly kind: 'made'; readonly body: Members }
  /** The network does not know the session any more. */
  | { readonly kind: 'gone' }
  | NotOk;

/** Parts are multiples of it. */
const unitBytes = 256 * 1_024;
const usualBytes = 8 * 1_024 * 1_024;
/** Of the last part, whose time is short. */
const maxLastBytes = 1_024 * 1_024;
/** Every fourth part is a checkpoint, and each costs its worker two pieces of memory that are freed late. */
const maxParts = 64;
/** A network does not say how long it keeps a session: it is asked, and none is given up by our clock. */
const keptMs = 365 * 86_400_000;

const lastBytes = (bytes: number, part: number): number => ((bytes - 1) % part) + 1;

export const partBytesOf = (bytes: number): number => {
  let part = Math.max(usualBytes, Math.ceil(bytes / maxParts / unitBytes) * unitBytes);
  while (lastBytes(bytes, part) > maxLastBytes) part -= unitBytes;
  return part;
};

/** Byte with which the last part begins. */
export const startOfLast = (bytes: number, part: number): number => bytes - lastBytes(bytes, part);

export const isGone = (answer: NetworkAnswer): boolean =>
  answer.kind === 'refused' && [404, 410].includes(answer.status);

const whereIn = (answer: NetworkAnswer): Whereabouts => {
  if (isGone(answer)) return { kind: 'gone' };
  if (answer.kind !== 'ok') return answer;
  if (answer.status !== 308) return { kind: 'made', body: answer.body };
  const last = /^bytes=0-(\d{1,15})$/.exec(answer.headers.range ?? '')?.[1];
  return { kind: 'at', offset: last === undefined ? 0 : Number(last) + 1 };
};

/** Asks a session what it has. */
export const whereIs = async (
  { client }: Pick<Bound, 'client'>,
  request: PublishRequest,
  path: string,
  signal: AbortSignal,
): Promise<Whereabouts> => {
  const headers = { 'content-range': `bytes */${request.media[0]?.bytes ?? 0}` };
  return whereIn(await client.call(subjectOf(request), { method: 'PUT', path, headers, takes: [308] }, signal));
};

export const partOf = async (
  media: PublishMedia,
  { session }: Pick<UploadSession, 'session'>,
  start: number,
  end: number,
  steps: Pick<PublishSteps, 'moved'>,
): Promise<Ask> => ({
  ...{ method: 'PUT', path: session, bytes: { path: await media.file(), start, end }, takes: [308] },
  headers: { 'content-type': media.contentType, 'content-range': `bytes ${start}-${end - 1}/${media.bytes}` },
  onSent: (bytes) => steps.moved(bytes),
});

/** Of a call: the bytes that it sends. Null: it sends none, and asks. */
export const rangeIn = (headers: Readonly<Record<string, string>>): { readonly isLast: boolean } | null => {
  const [, last, total] = /^bytes \d+-(\d+)\/(\d+)$/.exec(headers['content-range'] ?? '') ?? [];
  return last === undefined ? null : { isLast: Number(last) + 1 >= Number(total) };
};

/** Another session can be begun: no byte of the last part was sent to this one. */
const endedEarly = (): NotOk => ({
  ...{ kind: 'refused', status: 410, headers: {}, body: null, row: { means: 'later' }, named: 0 },
  failure: failureOf('later', '410', 'the upload session has ended'),
});

/** Sends all but the last part. Null: the network has them. */
export const sendParts = async <Own extends UploadSession>(
  work: FileWork,
  media: PublishMedia,
  own: Own,
  from: number,
  keep: KeepParts<Own>,
): Promise<NotOk | null> => {
  const last = startOfLast(media.bytes, own.partBytes);
  for (let at = from; at < last; ) {
    const ask = await partOf(media, own, at, Math.min(at + own.partBytes, last), work.steps);
    const found = whereIn(await callFor(work, ask));
    work.steps.signal.throwIfAborted();
    if (found.kind === 'gone') return endedEarly();
    if (found.kind === 'made') return { kind: 'silent', reason: 'the session was whole with a part of the file' };
    if (found.kind !== 'at') return found;
    if (found.offset <= at) return { kind: 'silent', reason: 'the session did not take a part' };
    at = found.offset;
    await keep(own, at);
  }
  return null;
};

/**
 * @param begin the call that begins a session, whose address is in the header `location`
 * @param made what is kept of a session that is whole
 */
export const resumable = <Own extends UploadSession>(
  work: FileWork,
  media: PublishMedia,
  begin: Ask,
  made: (session: UploadSession, body: Members | null) => Own,
): Uploader<Own> => {
  const { bound, request, steps } = work;
  let isNew = false;
  return {
    start: async ({ bytes }) => {
      isNew = true;
      const answer = await callFor(work, begin);
      if (answer.kind !== 'ok') return answer;
      const { location: session = '' } = answer.headers;
      if (!URL.canParse(session) || session.length > 8_192) {
        return { kind: 'silent', reason: 'the answer does not say where the file goes' };
      }
      const until = new Date(bound.clock() + keptMs).toISOString();
      return { kind: 'started', own: made({ session, partBytes: partBytesOf(bytes) }, null), until };
    },
    send: async (_item, own, _sent, keep) => {
      if (isNew) return sendParts(work, media, own, 0, keep);
      const found = await whereIs(bound, request, own.session, steps.signal);
      steps.signal.throwIfAborted();
      if (found.kind === 'gone') return endedEarly();
      if (found.kind === 'at') return sendParts(work, media, own, found.offset, keep);
      if (found.kind !== 'made') return found;
      await keep(made(own, found.body), media.bytes);
      return null;
    },
    secrets: ['session'],
  };
};
