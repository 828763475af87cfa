import { createHash } from 'node:crypto';
import { type Answer, invalid, refuse } from './answer.ts';
import { mayActAs } from './posts.ts';
import { accessOf, emptyOf, jsonOf, onlyHeaders, queryOf, type Request, versioned } from './request.ts';
import type { File, FileKind, FileStatus, State } from './state.ts';
import { flag, list, object, text, urn, whole } from './strict.ts';

/** learn.microsoft.com/linkedin, "Images API", "Videos API", "Documents API". */

const owner = urn('person', 'organization');
const ofVideo = { fileSizeBytes: whole, uploadCaptions: flag, uploadThumbnail: flag };
const initialize = (kind: FileKind) =>
  object(
    {
      initializeUploadRequest: object(
        { owner, ...(kind === 'video' ? ofVideo : {}) },
        kind === 'video' ? ['owner', 'fileSizeBytes'] : ['owner'],
      ),
    },
    ['initializeUploadRequest'],
  );
const finalize = object(
  {
    finalizeUploadRequest: object(
      { video: urn('video'), uploadToken: text(), uploadedPartIds: list(1, 2_000, text()) },
      [...['video', 'uploadToken', 'uploadedPartIds']],
    ),
  },
  ['finalizeUploadRequest'],
);

const hourMs = 3_600_000;
const [minVideo, maxVideo] = [75_000, 500 * 1024 * 1024];

const partsOf = (state: State, id: string, bytes: number | null): File['parts'] => {
  if (bytes === null) return [{ key: `${id}-0`, first: 0, last: -1, tag: null }];
  const count = Math.ceil(bytes / state.partBytes);
  return Array.from({ length: count }, (_, at) => {
    const first = at * state.partBytes;
    return { key: `${id}-${at}`, first, last: Math.min(first + state.partBytes, bytes) - 1, tag: null };
  });
};

export const mediaAction =
  (kind: FileKind) =>
  (state: State, request: Request): Answer => {
    versioned(state, request, null);
    const { action } = queryOf(request, { action: 'text' });
    if (action === 'initializeUpload') return initialized(state, request, kind);
    if (kind === 'video' && action === 'finalizeUpload') return finalized(state, request);
    throw invalid(`there is no action ${action}`);
  };

const initialized = (state: State, request: Request, kind: FileKind): Answer => {
  const access = accessOf(state, request);
  const body = jsonOf(request) as { initializeUploadRequest: { owner: string; fileSizeBytes?: number } };
  initialize(kind)(body, 'body');
  const { owner: by, fileSizeBytes: bytes = null } = body.initializeUploadRequest;
  mayActAs(state, access, by);
  if (bytes !== null && (bytes < minVideo || bytes > maxVideo)) throw invalid('fileSizeBytes: 75 KB to 500 MB');
  const id = `C4E${state.id()}`;
  const urnOf = `urn:li:${kind}:${id}`;
  const token = kind === 'video' ? `upload-${id}` : '';
  const until = state.now() + 2 * hourMs;
  const file: File = {
    ...{ id: urnOf, kind, owner: by, bytes, token, parts: partsOf(state, id, bytes), until },
    ...{ status: 'WAITING_UPLOAD', states: [...state.processing[kind]], received: 0, type: null },
  };
  state.files.set(urnOf, file);
  const url = (key: string) => `${request.origin}/dms-uploads/${kind}/${key}?ca=vector&m=signature-${key}&v=beta`;
  const value =
    kind === 'video'
      ? {
          ...{ uploadUrlsExpireAt: until, video: urnOf, uploadToken: token },
          uploadInstructions: file.parts.map(({ key, first, last }) => ({
            ...{ uploadUrl: url(key), firstByte: first, lastByte: last },
          })),
        }
      : { uploadUrlExpiresAt: until, uploadUrl: url(file.parts[0]?.key ?? ''), [kind]: urnOf };
  return { status: 200, body: { value } };
};

/** After the bytes of a file are there; the last state stays. */
const processed = (file: File): void => {
  const [first = 'AVAILABLE'] = file.states;
  if (file.states.length > 1) file.states.shift();
  file.status = first;
};

/** The address that takes bytes: of an image or document with the token, of a part of a video without it. */
export const putBytes = (state: State, request: Request): Answer => {
  const [, , kind, key = ''] = request.path.split('/');
  const file = [...state.files.values()].find((one) => one.kind === kind && one.parts.some((part) => part.key === key));
  const part = file?.parts.find((one) => one.key === key);
  if (file === undefined || part === undefined || !request.query.includes(`m=signature-${key}`))
    throw refuse('not_found');
  if (file.kind === 'video') onlyHeaders(request);
  else {
    onlyHeaders(request, 'authorization');
    accessOf(state, request);
  }
  if (file.until <= state.now()) throw refuse('upload_expired');
  const { body, headers } = request;
  const type = headers['content-type'] ?? '';
  if (body.length === 0) throw invalid('there are no bytes');
  if (file.kind === 'video') {
    if (type !== 'application/octet-stream') throw invalid('the parts of a video are application/octet-stream');
    if (body.length !== part.last - part.first + 1) throw invalid('the part has another size');
  } else {
    const wanted = file.kind === 'image' ? /^image\/(?:jpeg|png|gif)$/ : /^application\/pdf$/;
    if (!wanted.test(type)) throw invalid(`${type} is no ${file.kind}`);
    if (part.tag !== null) throw refuse('upload_expired');
  }
  file.type = type;
  file.received += body.length;
  part.tag = `"${createHash('sha256').update(key).digest('hex').slice(0, 16)}"`;
  if (file.kind !== 'video') processed(file);
  return { status: file.kind === 'video' ? 200 : 201, headers: { etag: part.tag } };
};

const finalized = (state: State, request: Request): Answer => {
  const access = accessOf(state, request);
  const body = jsonOf(request) as {
    finalizeUploadRequest: { video: string; uploadToken: string; uploadedPartIds: readonly string[] };
  };
  finalize(body, 'body');
  const { video, uploadToken, uploadedPartIds } = body.finalizeUploadRequest;
  const file = state.files.get(video);
  if (file === undefined) throw invalid(`${video} is no video`, 'INVALID_URN_ID');
  mayActAs(state, access, file.owner);
  if (file.token !== uploadToken) throw invalid('uploadToken is another');
  if (file.status !== 'WAITING_UPLOAD') throw invalid('the upload is finalized');
  const tags = file.parts.map(({ tag }) => tag);
  if (JSON.stringify(tags) !== JSON.stringify(uploadedPartIds))
    throw invalid('uploadedPartIds are not those of the parts');
  processed(file);
  return { status: 200 };
};

export const fileStatus =
  (kind: FileKind) =>
  (state: State, request: Request, id: string): Answer => {
    versioned(state, request, null);
    emptyOf(request);
    queryOf(request, {});
    const access = accessOf(state, request);
    urn(kind)(id, 'id');
    const file = state.files.get(id);
    if (file === undefined) throw refuse('not_found');
    mayActAs(state, access, file.owner);
    if (file.owner.startsWith('urn:li:person:') && !state.showsFiles) throw refuse('video_forbidden');
    const status: FileStatus = file.status;
    if (status === 'PROCESSING') processed(file);
    const failed = status === 'PROCESSING_FAILED' ? { processingFailureReason: 'The codec is not supported' } : {};
    return { status: 200, body: { id, owner: file.owner, status, ...failed } };
  };
