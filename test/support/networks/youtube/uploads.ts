import { type Answer, invalid, problems, refuse } from './answer.ts';
import {
  accessOf,
  jsonOf,
  onlyHeaders,
  partsOf,
  queryOf,
  type Request,
  resourceIn,
  tagOf,
  uploads,
} from './request.ts';
import type { Resource, Session, State, Video } from './state.ts';
import { checkedResource, shown } from './videos.ts';

/** developers.google.com/youtube, "Resumable uploads", "Thumbnails: set". */

const quarter = 256 * 1_024;

/** Begins a session. Errors in the words of a video are said here; nothing is on the channel yet. */
export const startUpload = (state: State, request: Request): Answer => {
  onlyHeaders(request, 'x-upload-content-type', 'x-upload-content-length');
  const { channelId } = accessOf(state, request, uploads);
  const { uploadType, part } = queryOf(request, 'uploadType', 'part', 'notifySubscribers?');
  if (uploadType !== 'resumable') throw invalid('uploadType must be resumable');
  if (!state.takes('inserts', 1)) throw refuse('quota');
  const parts = partsOf(part, 'snippet', 'status');
  const resource = resourceIn(jsonOf(request), parts);
  checkedResource(state, resource);
  const [type, length] = ['type', 'length'].map((name) => String(request.headers[`x-upload-content-${name}`] ?? ''));
  if (!/^(?:video\/.+|application\/octet-stream)$/.test(type ?? '')) throw invalid('X-Upload-Content-Type is no video');
  if (!/^[1-9]\d*$/.test(length ?? '')) throw invalid('X-Upload-Content-Length is missing');
  const key = state.token('AAANs');
  state.sessions.set(key, {
    ...{ key, channelId, resource, total: Number(length), type: type ?? '', tag: tagOf(request), received: 0 },
    ...{ partBytes: null, videoId: null },
  });
  const location = `${request.origin}/upload/youtube/v3/videos?uploadType=resumable&part=${part}&upload_id=${key}`;
  return { status: 200, headers: { location } };
};

export const sessionOf = (state: State, { query }: Request): Session | null =>
  state.sessions.get(new URLSearchParams(query).get('upload_id') ?? '') ?? null;

const resumes = ({ received }: Session): Answer => ({
  status: 308,
  ...(received === 0 ? {} : { headers: { range: `bytes=0-${received - 1}` } }),
});

const made = (state: State, session: Session, status: number): Answer => {
  const video = state.videos.find(({ id }) => id === session.videoId);
  return video === undefined ? problems.session_gone : { status, body: shown(state, video, ['snippet', 'status']) };
};

/** `PUT last`, `PUT part`, `PUT probe`. */
export const kindOfPut = ({ headers }: Request): 'last' | 'part' | 'probe' => {
  const [, last, total] = /^bytes \d+-(\d+)\/(\d+)$/.exec(headers['content-range'] ?? '') ?? [];
  if (last === undefined) return 'probe';
  return Number(last) + 1 === Number(total) ? 'last' : 'part';
};

export const putUpload = (state: State, request: Request): Answer => {
  onlyHeaders(request, 'content-range');
  const session = sessionOf(state, request);
  if (session === null) return problems.session_gone;
  const { channelId } = accessOf(state, request, uploads);
  if (channelId !== session.channelId) throw refuse('forbidden');
  const range = request.headers['content-range'] ?? '';
  if (range === `bytes */${session.total}`) {
    if (request.bytes > 0) throw invalid('a question has no body');
    return session.videoId === null ? resumes(session) : made(state, session, 200);
  }
  const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(range) ?? [];
  if (Number(total) !== session.total) throw invalid(`Content-Range is ${range}, of ${session.total} bytes`);
  const [start, end] = [Number(first), Number(last) + 1];
  if (end - start !== request.bytes) throw invalid(`Content-Range ${range} is not of ${request.bytes} bytes`);
  if (request.headers['content-type'] !== session.type) throw invalid('the file is of another type');
  if (session.videoId !== null) return made(state, session, 200);
  if (start !== session.received) return resumes(session);
  const isLast = end === session.total;
  if (!isLast && (end - start) % quarter !== 0) throw invalid('a part is no multiple of 256 KiB');
  const keeps = isLast ? end - start : (state.options.keeps?.(end - start) ?? end - start);
  if (!isLast && state.options.keeps === undefined) {
    session.partBytes ??= end - start;
    if (session.partBytes !== end - start) throw invalid('all parts but the last have one size');
  }
  session.received += keeps;
  if (!isLast) return resumes(session);
  const video = madeOf(state, session);
  state.videos.push(video);
  session.videoId = video.id;
  return made(state, session, 201);
};

const wordsOf = (resource: Resource): string => JSON.stringify(resource);

const madeOf = (state: State, session: Session): Video => {
  const { resource, channelId, tag, total } = session;
  const fate = state.fateOf(wordsOf(resource));
  const at = state.now();
  const isProcessed = fate?.then === 'processing' || fate?.then === 'rejected';
  const dueAt = typeof resource.status?.publishAt === 'string' ? Date.parse(resource.status.publishAt) : null;
  const early = fate?.then === 'native_early' ? at + fate.ms : null;
  const never = fate?.then === 'native_never' || fate?.then === 'native_failed';
  return {
    ...{ id: state.id(11), channelId, snippet: resource.snippet ?? {}, tag, at },
    status: { ...resource.status, ...(fate?.then === 'locked' ? { privacyStatus: 'private' } : {}) },
    ...{ bytes: total, processedAt: at + (isProcessed ? fate.ms : (state.options.processingMs ?? 0)) },
    ...{ ends: fate?.then === 'rejected' ? 'rejected' : 'processed', thumbnails: [] },
    reason: fate?.then === 'rejected' ? 'inappropriate' : null,
    visibleAt: dueAt === null || never ? null : (early ?? dueAt),
    failsAt: fate?.then === 'native_failed' ? dueAt : null,
  };
};

export const setThumbnail = (state: State, request: Request): Answer => {
  onlyHeaders(request);
  const { channelId } = accessOf(state, request, uploads);
  const { videoId = '' } = queryOf(request, 'videoId', 'uploadType');
  if (!state.takes('units', 50)) throw refuse('quota');
  const video = state.video(videoId);
  if (video === null) throw refuse('not_found');
  if (video.channelId !== channelId) throw refuse('forbidden');
  if (state.channels.get(channelId)?.isVerified !== true) throw refuse('thumbnail_forbidden');
  if (!['image/jpeg', 'image/png', 'application/octet-stream'].includes(request.headers['content-type'] ?? '')) {
    throw refuse('invalid_image');
  }
  if (request.bytes === 0 || request.bytes > 52_428_800) throw refuse('invalid_image');
  video.thumbnails.push(request.sha256);
  const url = `https://i.ytimg.com/vi/${videoId}/default.jpg`;
  return {
    status: 200,
    body: { kind: 'youtube#thumbnailSetResponse', etag: 'e', items: [{ default: { url, width: 120, height: 90 } }] },
  };
};
