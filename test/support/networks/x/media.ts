import { type Answer, invalidRequest, refuse } from './answer.ts';
import { accessOf, emptyOf, jsonOf, type Part, partsOf, type Request, single } from './request.ts';
import type { MediaUpload, State } from './state.ts';
import { flag, id, list, object, oneOf, text, whole } from './strict.ts';

/** Uploads, in the dedicated paths of API v2. OpenAPI 2.167, MediaUploadConfigRequest and its neighbours. */

const types = oneOf(
  ...['video/mp4', 'video/webm', 'video/mp2t', 'video/quicktime', 'text/srt', 'text/vtt', 'image/jpeg', 'image/gif'],
  ...['image/bmp', 'image/png', 'image/webp', 'image/pjpeg', 'image/tiff', 'model/gltf-binary'],
);
const categories = [
  ...['tweet_image', 'tweet_video', 'tweet_gif', 'dm_image', 'dm_video', 'dm_gif', 'subtitles', 'amplify_video'],
];
const category = oneOf(...categories);
const config = object(
  {
    ...{ media_type: types, total_bytes: whole(1, 17_179_869_184), media_category: category },
    ...{ additional_owners: list(0, 100, id), shared: flag },
  },
  ['media_type', 'total_bytes', 'media_category'],
);
const metadata = object(
  {
    id,
    metadata: object({ alt_text: object({ text: text(undefined, 1_000) }, ['text']) }),
  },
  ['id'],
);

const maxSegment = 5 * 1024 * 1024;
const maxBytes: Readonly<Record<string, number>> = {
  tweet_image: 5 * 1024 * 1024,
  tweet_gif: 15 * 1024 * 1024,
  tweet_video: 512 * 1024 * 1024,
};
const prefixes: Readonly<Record<string, string>> = { tweet_image: '3', tweet_video: '7', tweet_gif: '16' };
const dayMs = 86_400_000;
const fifteenDaysSeconds = 1_295_999;

const own = (state: State, personId: string, uploadId: string): MediaUpload => {
  const upload = state.uploads.get(uploadId);
  if (upload === undefined || upload.personId !== personId || upload.until <= state.now()) {
    throw invalidRequest('The media id is invalid.');
  }
  return upload;
};

const opened = (state: State, personId: string, type: string, kind: string, totalBytes: number): MediaUpload => {
  if (totalBytes > (maxBytes[kind] ?? 0)) throw invalidRequest(`total_bytes: too many for ${kind}`);
  const uploadId = state.id();
  const upload: MediaUpload = {
    ...{ id: uploadId, key: `${prefixes[kind] ?? '13'}_${uploadId}`, personId, type, category: kind, totalBytes },
    ...{ segments: new Map(), received: 0, until: state.now() + fifteenDaysSeconds * 1_000 },
    ...{ isFinalized: false, processing: [], isReady: false, altText: null },
  };
  state.uploads.set(uploadId, upload);
  return upload;
};

export const initialize = (state: State, request: Request): Answer => {
  const { personId } = accessOf(state, request, 'media.write');
  const body = jsonOf(request);
  config(body, 'body');
  const { media_type, media_category, total_bytes } = body as Record<string, string> & { total_bytes: number };
  if (media_type === undefined || media_category === undefined) throw invalidRequest('unreachable');
  const fits: Readonly<Record<string, string>> = {
    tweet_image: 'image/',
    tweet_video: 'video/',
    tweet_gif: 'image/gif',
  };
  if (!media_type.startsWith(fits[media_category] ?? ''))
    throw invalidRequest('media_category does not fit media_type');
  const upload = opened(state, personId, media_type, media_category, total_bytes);
  return {
    status: 200,
    body: { data: { id: upload.id, media_key: upload.key, expires_after_secs: fifteenDaysSeconds } },
  };
};

const fieldsOf = (parts: readonly Part[], known: readonly string[]): ReadonlyMap<string, Part> => {
  const fields = new Map<string, Part>();
  for (const part of parts) {
    if (!known.includes(part.name)) throw invalidRequest(`the member [${part.name}] is not one of the schema`);
    if (fields.has(part.name)) throw invalidRequest(`[${part.name}] comes twice`);
    fields.set(part.name, part);
  }
  return fields;
};

export const append = (state: State, request: Request, uploadId: string): Answer => {
  const { personId } = accessOf(state, request, 'media.write');
  const upload = own(state, personId, uploadId);
  const fields = fieldsOf(partsOf(request), ['media', 'segment_index']);
  const index = fields.get('segment_index')?.data.toString('utf8') ?? '';
  const media = fields.get('media');
  if (!/^\d{1,3}$/.test(index) || media === undefined) throw invalidRequest('media and segment_index are required');
  if (upload.isFinalized) throw invalidRequest('The upload is finalized.');
  if (media.data.length === 0 || media.data.length > maxSegment)
    throw invalidRequest('media: a segment has 1 B to 5 MB');
  upload.segments.set(Number(index), media.data.length);
  upload.received += media.data.length;
  return { status: 200, body: { data: { expires_at: Math.floor(upload.until / 1_000) } } };
};

export const finalize = (state: State, request: Request, uploadId: string): Answer => {
  const { personId } = accessOf(state, request, 'media.write');
  emptyOf(request);
  const upload = own(state, personId, uploadId);
  if (upload.isFinalized) throw invalidRequest('The upload is finalized.');
  const sizes = Array.from({ length: upload.segments.size }, (_, index) => upload.segments.get(index));
  if (sizes.includes(undefined) || sizes.reduce<number>((sum, one) => sum + (one ?? 0), 0) !== upload.totalBytes) {
    throw invalidRequest('Segments do not add up to provided total file size.');
  }
  upload.isFinalized = true;
  upload.until = state.now() + dayMs;
  const isVideo = upload.category === 'tweet_video';
  const [first, ...rest] = isVideo ? state.processing : [];
  // The last state stays.
  upload.processing = first !== undefined && rest.length === 0 ? [first] : rest;
  upload.isReady = first === undefined;
  return {
    status: 200,
    body: {
      data: {
        ...{ id: upload.id, media_key: upload.key, size: upload.totalBytes, expires_after_secs: dayMs / 1_000 },
        ...(first === undefined ? {} : { processing_info: first }),
      },
    },
  };
};

export const status = (state: State, request: Request): Answer => {
  const { personId } = accessOf(state, request, 'media.write');
  emptyOf(request);
  const members = single(request.query);
  object({ command: oneOf('STATUS'), media_id: id }, ['command', 'media_id'])(members, 'query');
  const upload = own(state, personId, members.media_id ?? '');
  const { id: uploadId, key: media_key } = upload;
  if (!upload.isFinalized) return { status: 200, body: { data: { id: uploadId, media_key } } };
  const info = upload.processing.length > 1 ? upload.processing.shift() : upload.processing[0];
  if (info?.state === 'succeeded') upload.isReady = true;
  return {
    status: 200,
    body: { data: { id: uploadId, media_key, ...(info === undefined ? {} : { processing_info: info }) } },
  };
};

/** A picture in one call. */
export const uploadOnce = (state: State, request: Request): Answer => {
  const { personId } = accessOf(state, request, 'media.write');
  const known = ['media', 'media_category', 'media_type', 'additional_owners', 'shared'];
  const fields = fieldsOf(partsOf(request), known);
  const media = fields.get('media');
  const kind = fields.get('media_category')?.data.toString('utf8');
  if (media === undefined || kind === undefined) throw invalidRequest('media and media_category are required');
  oneOf('tweet_image', 'dm_image', 'subtitles')(kind, 'media_category');
  if (!/^image\/(?:jpeg|png|webp|gif|bmp|tiff|pjpeg)$/.test(media.type ?? '')) throw invalidRequest('media: no image');
  const upload = opened(state, personId, media.type ?? '', kind, media.data.length);
  upload.received = media.data.length;
  upload.until = state.now() + dayMs;
  upload.isFinalized = true;
  upload.isReady = true;
  const { id: uploadId, key: media_key, totalBytes: size } = upload;
  return { status: 200, body: { data: { id: uploadId, media_key, size, expires_after_secs: dayMs / 1_000 } } };
};

export const describe = (state: State, request: Request): Answer => {
  const { personId } = accessOf(state, request, 'media.write');
  const body = jsonOf(request);
  metadata(body, 'body');
  const { id: uploadId, metadata: given } = body as { id: string; metadata?: { alt_text?: { text: string } } };
  const upload = own(state, personId, uploadId);
  if (upload.category === 'tweet_video') throw refuse('not_permitted');
  upload.altText = given?.alt_text?.text ?? null;
  return { status: 200, body: { data: { id: uploadId, associated_metadata: given ?? {} } } };
};
