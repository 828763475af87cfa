import { setTimeout as delay } from 'node:timers/promises';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { integerIn, type Members, membersOf, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { mediaFailure, outcomeOfVideo, stillProcessing } from './errors.ts';
import type { Uploading } from './upload.ts';
import { defaultPollMs, type Job, jobOf, type PartCalls, partCalls, type VideoOptions } from './video-service.ts';
import type { XrpcResult } from './xrpc.ts';

/**
 * Uploads a video in parts (lexicons app.bsky.video.startUpload, uploadPart, finishUpload, getUploadStatus and
 * abortUpload). A worker that dies leaves the upload to the next one, which asks the service what it has and sends the rest.
 */

/** An upload that is open at the service, as the checkpoint `parts` keeps it. It publishes nothing. */
interface Parts {
  readonly mediaId: string;
  readonly sha256: string;
  readonly jobId: string;
  readonly partSizeBytes: number;
  readonly partCount: number;
}

/** What the service has of an upload. */
type Seen =
  | { readonly kind: 'open'; readonly received: ReadonlySet<number> }
  | { readonly kind: 'finishing' }
  | { readonly kind: 'job'; readonly job: Job }
  /** It takes no more of it: the upload expired, was aborted or failed. */
  | { readonly kind: 'over'; readonly said: string }
  /** The service has no such upload for us; the whole file may go up at once. */
  | { readonly kind: 'unsupported' };

interface Sending {
  readonly uploading: Uploading;
  readonly video: PublishMedia;
  readonly call: PartCalls;
  readonly pollMs: number;
  readonly waitMs: number;
}

/** A plan of more parts would keep a worker in small calls. */
const maxParts = 10_000;
/** Tries of one part by one worker, and rounds without a new part. */
const maxTries = 3;
const lexicon = 'app.bsky.video';

/** Answers about an upload that is gone, is being finished, or was cut otherwise than the service expects. */
const gone = new Set(['UploadNotFound', 'UploadExpired', 'UploadAborted', 'UploadFailed']);
const busy = new Set(['UploadNotReady', 'UploadAlreadyCompleted', 'MissingParts']);
const misplanned = new Set(['InvalidPartNumber', 'PartSizeMismatch']);

/** What the service says of every upload, so another way to send the file would meet it too. */
const isOfAccountOrFile = ({ error, status }: Extract<XrpcResult, { kind: 'refused' }>): boolean =>
  status === 429 || (status >= 500 && status !== 501) || startErrors.has(error);
const startErrors = new Set([
  ...['UnsupportedContentType', 'VideoTooLarge', 'VideoTooLong', 'BadAspectRatio', 'DailyLimitExceeded'],
  ...['TooManyOpenUploads', 'UploadForbidden', 'ServiceOverloaded', 'unconfirmed_email'],
]);

const mayPass = (result: XrpcResult): boolean =>
  result.kind === 'silent' ||
  result.kind === 'unsent' ||
  (result.kind === 'refused' && (result.error === 'ServiceOverloaded' || result.status >= 500));

/**
 * The upload that an earlier attempt opened and did not finish. Null: there is none; or it has a job by now, which may have
 * failed; or its file was in a write that failed and may be gone.
 */
const earlier = ({ checkpoints }: PublishRequest): Parts | null => {
  const last = checkpoints.findLast(({ step }) => ['parts', 'video', 'boundary'].includes(step));
  const kept = last?.step === 'parts' ? membersOf(last.data) : null;
  return textIn(kept ?? null, 'jobId') === null ? null : (kept as Parts | null);
};

const keep = async ({ uploading }: Sending, parts: Parts): Promise<Parts> => {
  await uploading.steps.checkpoint('parts', { ...parts });
  return parts;
};

/** The next attempt opens another. */
const forget = ({ uploading, video }: Sending): Promise<void> =>
  uploading.steps.checkpoint('parts', { mediaId: video.mediaId, jobId: null });

/** Frees what the account may have open; nothing depends on it, as the service ends an upload by itself in the end. */
const abort = async ({ call }: Sending, jobId: string): Promise<void> => {
  await call({ nsid: `${lexicon}.abortUpload`, input: { jobId } });
};

const deferred = ({ video }: Sending, said: string): Failed => ({
  kind: 'deferred',
  failure: mediaFailure(video.mediaId, said),
});

const failedBy = ({ uploading, video }: Sending, result: Exclude<XrpcResult, { kind: 'ok' }>): Failed =>
  outcomeOfVideo(result, video.mediaId, uploading.now());

const start = async (sending: Sending): Promise<Parts | Failed | { readonly kind: 'unsupported' }> => {
  const { call, video, uploading } = sending;
  const { bytes, durationMs, width, height, mediaId, sha256 } = video;
  const known = Object.entries({ durationMs, width, height }).filter(([, value]) => value !== null);
  const name = `${uploading.request.targetId}.mp4`;
  const input = { sizeBytes: bytes, mimeType: 'video/mp4', name, ...Object.fromEntries(known) };
  const result = await call({ nsid: `${lexicon}.startUpload`, input });
  if ('failure' in result) return result;
  if (result.kind === 'refused' && !isOfAccountOrFile(result)) return { kind: 'unsupported' };
  if (result.kind !== 'ok') return failedBy(sending, result);
  const { data } = result;
  const jobId = textIn(data, 'jobId') ?? '';
  const [partSizeBytes = 0, partCount = 0] = ['partSizeBytes', 'partCount'].map((one) => integerIn(data, one) ?? 0);
  const isPlan = partSizeBytes > 0 && partCount <= maxParts && partCount === Math.ceil(bytes / partSizeBytes);
  if (jobId !== '' && jobId.length <= 256 && isPlan) {
    return keep(sending, { mediaId, sha256, jobId, partSizeBytes, partCount });
  }
  if (jobId !== '') await abort(sending, jobId);
  return { kind: 'unsupported' };
};

const stateOf = (data: Members): Seen | null => {
  const parts = Array.isArray(data.receivedParts) ? data.receivedParts : [];
  switch (textIn(data, 'state')) {
    case 'created':
      return { kind: 'open', received: new Set(parts.filter((one) => typeof one === 'number')) };
    case 'finishing':
      return { kind: 'finishing' };
    case 'completed':
      return finishedBy(data);
    case 'failed':
    case 'aborted':
    case 'expired':
      return { kind: 'over', said: textIn(data, 'failureReason') ?? `the upload is ${textIn(data, 'state')}` };
    default:
      return null;
  }
};

/** The job to ask for may be another than that of the upload: of the same file, which the service has already. */
const finishedBy = (data: Members): Seen | null => {
  const job = jobOf(data);
  const jobId = textIn(data, 'completedJobId') ?? job.jobId;
  return jobId === null ? null : { kind: 'job', job: { ...job, jobId } };
};

const look = async (sending: Sending, { jobId }: Parts): Promise<Seen | Failed> => {
  const result = await sending.call({ nsid: `${lexicon}.getUploadStatus`, params: { jobId } });
  if ('failure' in result) return result;
  if (result.kind === 'refused' && gone.has(result.error)) return { kind: 'over', said: result.error };
  if (result.kind !== 'ok') return failedBy(sending, result);
  return stateOf(result.data) ?? deferred(sending, 'the answer has no state of the upload');
};

/** @returns null: the service has the part */
const sendPart = async (sending: Sending, parts: Parts, partNumber: number): Promise<Seen | Failed | 'look' | null> => {
  const { call, video, uploading, pollMs } = sending;
  const path = await video.file();
  const begin = (partNumber - 1) * parts.partSizeBytes;
  const body = [{ path, start: begin, end: Math.min(begin + parts.partSizeBytes, video.bytes) }];
  const params = { jobId: parts.jobId, partNumber: String(partNumber) };
  const input = { type: 'application/octet-stream', body };
  const onSent = (bytes: number) => uploading.steps.moved(bytes);
  for (let tries = 1; ; tries += 1) {
    const result = await call({ nsid: `${lexicon}.uploadPart`, params, input, onSent });
    if ('failure' in result) return result;
    if (result.kind === 'ok') {
      return integerIn(result.data, 'partNumber') === partNumber
        ? null
        : deferred(sending, 'the answer is not about the part');
    }
    if (result.kind === 'refused') {
      if (gone.has(result.error)) return { kind: 'over', said: result.message || result.error };
      if (busy.has(result.error)) return 'look';
      if (misplanned.has(result.error)) return { kind: 'unsupported' };
    }
    if (tries === maxTries || !mayPass(result)) return failedBy(sending, result);
    await delay(pollMs, undefined, { signal: uploading.steps.signal });
  }
};

const finish = async (sending: Sending, { jobId }: Parts): Promise<Seen | Failed | 'look'> => {
  const result = await sending.call({ nsid: `${lexicon}.finishUpload`, input: { jobId } }, true);
  if ('failure' in result) return result;
  if (result.kind === 'ok') return finishedBy(result.data) ?? 'look';
  if (result.kind === 'refused' && gone.has(result.error)) {
    return { kind: 'over', said: result.message || result.error };
  }
  // An answer that did not come, or that only says "later", leaves open whether it has begun: the state says.
  if (mayPass(result) || (result.kind === 'refused' && busy.has(result.error))) return 'look';
  return failedBy(sending, result);
};

/** Sends what the service lacks, and finishes. */
const sendMissing = async (
  sending: Sending,
  parts: Parts,
  received: ReadonlySet<number>,
): Promise<Seen | Failed | 'look'> => {
  for (let partNumber = 1; partNumber <= parts.partCount; partNumber += 1) {
    if (received.has(partNumber)) continue;
    const sent = await sendPart(sending, parts, partNumber);
    if (sent !== null) return sent;
  }
  return finish(sending, parts);
};

/** One upload, from what the service has of it to its job. */
const complete = async (sending: Sending, parts: Parts, first: Seen | Failed): Promise<Seen | Failed> => {
  const { uploading, pollMs, waitMs, video } = sending;
  const until = performance.now() + waitMs;
  let had = -1;
  let stale = 0;
  let seen = first;
  for (;;) {
    if ('failure' in seen || (seen.kind !== 'open' && seen.kind !== 'finishing')) return seen;
    if (seen.kind === 'finishing') {
      if (performance.now() > until) return { kind: 'deferred', failure: stillProcessing(video.mediaId) };
    } else {
      stale = seen.received.size > had ? 0 : stale + 1;
      if (stale === maxTries) return deferred(sending, 'the service does not finish the upload');
      had = seen.received.size;
      const sent = await sendMissing(sending, parts, seen.received);
      if (sent !== 'look') return sent;
    }
    await delay(pollMs, undefined, { signal: uploading.steps.signal });
    seen = await look(sending, parts);
  }
};

/**
 * If we die between the service's answer to `startUpload` and the checkpoint, that upload stays open without parts until the
 * service ends it, and the next attempt opens another.
 * @returns null: the service, or the consent, has no such upload, and nothing of it is open
 */
export const uploadInParts = async (
  uploading: Uploading,
  video: PublishMedia,
  options: VideoOptions,
  waitMs: number,
  mayStart: () => Promise<Failed | null>,
): Promise<Job | Failed | null> => {
  const pollMs = options.videoPollMs ?? defaultPollMs;
  const sending: Sending = { uploading, video, call: partCalls(uploading, options), pollMs, waitMs };
  let kept = earlier(uploading.request);
  if (kept !== null && (kept.mediaId !== video.mediaId || kept.sha256 !== video.sha256)) {
    await abort(sending, kept.jobId);
    kept = null;
  }
  if (kept !== null) {
    const seen = await complete(sending, kept, await look(sending, kept));
    if ('failure' in seen) return seen;
    if (seen.kind === 'job') return seen.job;
    if (seen.kind === 'unsupported') await abort(sending, kept.jobId);
    await forget(sending);
    if (seen.kind === 'unsupported') return null;
  }
  const refused = await mayStart();
  if (refused !== null) return refused;
  const started = await start(sending);
  if ('failure' in started) return started;
  if ('kind' in started) return null;
  const seen = await complete(sending, started, { kind: 'open', received: new Set() });
  if ('failure' in seen) return seen;
  if (seen.kind === 'job') return seen.job;
  await forget(sending);
  if (seen.kind === 'over') return deferred(sending, seen.said);
  await abort(sending, started.jobId);
  return null;
};
