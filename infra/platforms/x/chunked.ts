import type { Json, PublishMedia } from '#contracts/ports/platform.ts';
import { membersOf, numberIn, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import type { Ask, XResult } from './api.ts';
import { badMedia, processing } from './errors.ts';
import { tellAltText } from './images.ts';
import {
  earlier,
  incomplete,
  isFailed,
  keep,
  notOk,
  startedOf,
  subjectOf,
  type Upload,
  type Uploading,
  untilOf,
} from './upload.ts';

/**
 * Uploads a video or a GIF in segments (docs.x.com, "Chunked media upload"). Each worker goes on where the last one
 * stopped: what X has of a file is not sent again from its beginning.
 */

/** Segments between two checkpoints: a worker that dies costs no more than these. */
const perCheckpoint = 4;
const maxSegments = 1_000;
const maxWaitSeconds = 25;
/** Preparation without a sign of life for 60 s is ended. */
const signOfLifeMs = 20_000;

export const uploadInSegments = async (uploading: Uploading, media: PublishMedia): Promise<Upload | Failed> => {
  const kept = earlier(uploading, media);
  const started = kept ?? (await initialize(uploading, media));
  if (isFailed(started)) return started;
  const appended = started.state === 'appending' ? await append(uploading, media, started) : started;
  if (isFailed(appended) || appended.state === 'ready') return appended;
  const finalized = await finalize(uploading, media, appended, kept?.state === 'appended');
  if (isFailed(finalized)) return finalized;
  const described = await tellAltText(uploading, media, finalized);
  return described ?? keep(uploading, { ...finalized, state: 'ready' });
};

const ask = async ({ api, request, steps }: Uploading, call: Ask): Promise<XResult> => {
  const result = await api.call(subjectOf(request), call, steps.signal);
  steps.signal.throwIfAborted();
  return result;
};

const initialize = async (uploading: Uploading, media: PublishMedia): Promise<Upload | Failed> => {
  const result = await ask(uploading, {
    method: 'POST',
    path: '/2/media/upload/initialize',
    json: {
      media_type: media.contentType,
      total_bytes: media.bytes,
      media_category: media.kind === 'video' ? 'tweet_video' : 'tweet_gif',
    },
  });
  if (result.kind !== 'ok') return notOk(uploading, media, result);
  const segmentBytes = Math.max(uploading.segmentBytes, Math.ceil(media.bytes / maxSegments));
  const started = startedOf(uploading, media, result.body.data, { segmentBytes, next: 0, state: 'appending' });
  return started === null ? incomplete(media, 'the answer has no id of the file') : keep(uploading, started);
};

const append = async (uploading: Uploading, media: PublishMedia, from: Upload): Promise<Upload | Failed> => {
  const { steps } = uploading;
  const path = await media.file();
  const segments = Math.ceil(media.bytes / from.segmentBytes);
  for (let next = from.next, kept = from.next; next < segments; next += 1) {
    const start = next * from.segmentBytes;
    const file = { path, start, end: Math.min(start + from.segmentBytes, media.bytes) };
    const form = { fields: { segment_index: String(next) }, file, type: 'application/octet-stream' };
    const onSent = (bytes: number) => steps.moved(bytes);
    const to = `/2/media/upload/${from.id}/append`;
    const result = await ask(uploading, { method: 'POST', path: to, form, onSent });
    if (result.kind !== 'ok') {
      // What arrived is not sent again.
      if (next > kept) await keep(uploading, { ...from, next });
      return givenUp(uploading, media, from, result);
    }
    if (next + 1 - kept < perCheckpoint || next + 1 === segments) continue;
    kept = next + 1;
    await keep(uploading, { ...from, next: kept });
  }
  return keep(uploading, { ...from, next: segments, state: 'appended' });
};

/** An upload that X does not take any more is of no use to the next attempt. */
const givenUp = async (
  uploading: Uploading,
  media: PublishMedia,
  upload: Upload,
  result: Exclude<XResult, { readonly kind: 'ok' }>,
): Promise<Failed> => {
  const failed = notOk(uploading, media, result);
  const isOver = failed.kind === 'failed' && failed.failure.mediaId !== null;
  if (isOver) await keep(uploading, { ...upload, state: 'failed' });
  return failed;
};

/** @param mayBeFinalized an earlier worker may have finalized it: the worker asks X before it sends FINALIZE */
const finalize = async (
  uploading: Uploading,
  media: PublishMedia,
  upload: Upload,
  mayBeFinalized: boolean,
): Promise<Upload | Failed> => {
  if (upload.state === 'processing') return processed(uploading, media, upload, null);
  if (mayBeFinalized) {
    const seen = await status(uploading, upload);
    if (seen.kind !== 'ok') return givenUp(uploading, media, upload, seen);
    const info = membersOf(seen.body.data)?.processing_info;
    if (info !== undefined && info !== null) return processed(uploading, media, upload, info);
  }
  const result = await ask(uploading, { method: 'POST', path: `/2/media/upload/${upload.id}/finalize` });
  if (result.kind !== 'ok') return givenUp(uploading, media, upload, result);
  const { data } = result.body;
  const until = untilOf(uploading.now(), data) ?? upload.until;
  const info = membersOf(data)?.processing_info;
  const finalized: Upload = { ...upload, until, state: 'processing' };
  // Without it the file is ready at once.
  if (info === undefined || info === null) return finalized;
  return processed(uploading, media, await keep(uploading, finalized), info);
};

const status = (uploading: Uploading, { id }: Upload): Promise<XResult> =>
  ask(uploading, { method: 'GET', path: '/2/media/upload', query: { command: 'STATUS', media_id: id } });

/** Asks as often as X says, until the file is ready. @param said the last answer about it; null: none yet */
const processed = async (
  uploading: Uploading,
  media: PublishMedia,
  upload: Upload,
  said: Json | null,
): Promise<Upload | Failed> => {
  const { now, pause, steps, processingMs } = uploading;
  const until = now() + processingMs;
  let info: Json | null = said;
  let aliveAt = now();
  for (;;) {
    const state = textIn(info, 'state');
    // X has been seen to keep a file in progress that has an error.
    const error = membersOf(info)?.error;
    if (state === 'failed' || membersOf(error) !== null) {
      await keep(uploading, { ...upload, state: 'failed' });
      const words = textIn(error, 'message') ?? 'X could not process the file';
      return { kind: 'failed', failure: badMedia(media.mediaId, textIn(error, 'name'), words) };
    }
    if (state === 'succeeded') return upload;
    if (now() >= until) return { kind: 'deferred', failure: processing(media.mediaId) };
    const seconds = numberIn(info, 'check_after_secs') ?? 1;
    if (info !== null) await pause(Math.min(Math.max(seconds, 1), maxWaitSeconds) * 1_000, steps.signal);
    steps.signal.throwIfAborted();
    if (now() - aliveAt >= signOfLifeMs) {
      await keep(uploading, { ...upload, state: 'processing' });
      aliveAt = now();
    }
    const result = await status(uploading, upload);
    if (result.kind !== 'ok') return givenUp(uploading, media, upload, result);
    const { data } = result.body;
    if (textIn(data, 'id') !== upload.id) return incomplete(media, 'the answer is not about the file');
    // A file without it needs no processing.
    info = membersOf(data)?.processing_info ?? { state: 'succeeded' };
  }
};
