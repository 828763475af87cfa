import { setTimeout as delay } from 'node:timers/promises';
import type { Json, PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { integerIn, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { mediaFailure, outcomeOfVideo, stillProcessing, uploadRefused, videoRefused } from './errors.ts';
import type { UploadedMedia } from './record.ts';
import type { Uploading } from './upload.ts';
import { uploadInParts } from './video-parts.ts';
import {
  defaultPollMs,
  type Job,
  jobOf,
  serviceDid,
  serviceToken,
  subjectOf,
  uploadToken,
  type VideoOptions,
} from './video-service.ts';
import { type XrpcResult, xrpc } from './xrpc.ts';

/**
 * Videos go to a service of their own, which makes them ready and puts them into the repository (docs.bsky.app, "Video";
 * lexicons app.bsky.video.*). A job goes on without us: a later attempt asks for it by its id.
 */

/** How long one attempt waits for a job; the next goes on. */
const defaultWaitMs = 40_000;

/** A file that the service knows already is answered as an error that names its job. */
const startedBy = (result: XrpcResult, mediaId: string, now: number): Job | Failed => {
  if (result.kind === 'ok') return jobOf(result.data);
  if (result.kind === 'refused' && result.error === 'already_exists' && result.data !== null) return jobOf(result.data);
  return outcomeOfVideo(result, mediaId, now);
};

/**
 * Asked before a file goes up, so that none is sent in vain. A service, or a consent, that tells no limits lets us try.
 * @returns null: the account may upload it, as far as is known
 */
const refusedBefore = async (
  uploading: Uploading,
  { bytes, mediaId }: PublishMedia,
  options: VideoOptions,
): Promise<Failed | null> => {
  const { http, request, steps, now } = uploading;
  const nsid = 'app.bsky.video.getUploadLimits';
  const auth = await serviceToken(uploading, serviceDid(options), nsid);
  steps.signal.throwIfAborted();
  if ('kind' in auth) return null;
  const ask = { service: options.videoService, nsid, token: auth.token, subject: subjectOf(request) };
  const result = await xrpc(http, ask, steps.signal);
  steps.signal.throwIfAborted();
  if (result.kind !== 'ok') return null;
  const { data } = result;
  const [videos, left] = ['remainingDailyVideos', 'remainingDailyBytes'].map((name) => integerIn(data, name));
  const isSpent = videos === 0 || (typeof left === 'number' && left < bytes);
  if (data.canUpload !== false && !isSpent) return null;
  const error = textIn(data, 'error') ?? (isSpent ? 'DailyLimitExceeded' : '');
  return uploadRefused(error, textIn(data, 'message'), mediaId, now());
};

/** The whole file in one call, for services without uploads in parts. */
const uploadWhole = async (
  uploading: Uploading,
  video: PublishMedia,
  { videoService }: VideoOptions,
): Promise<Job | Failed> => {
  const { http, secret, request, steps, now } = uploading;
  const auth = await uploadToken(uploading);
  if ('kind' in auth) return auth;
  const path = await video.file();
  const result = await xrpc(
    http,
    {
      ...{ service: videoService, nsid: 'app.bsky.video.uploadVideo', token: auth.token, subject: subjectOf(request) },
      params: { did: secret.did, name: `${request.targetId}.mp4` },
      input: { type: 'video/mp4', body: [{ path, start: 0, end: video.bytes }] },
      onSent: (bytes) => steps.moved(bytes),
    },
    steps.signal,
  );
  steps.signal.throwIfAborted();
  return startedBy(result, video.mediaId, now());
};

const start = async (uploading: Uploading, video: PublishMedia, options: VideoOptions): Promise<Job | Failed> => {
  const waitMs = options.videoWaitMs ?? defaultWaitMs;
  const mayStart = () => refusedBefore(uploading, video, options);
  const sent = await uploadInParts(uploading, video, options, waitMs, mayStart);
  return sent ?? uploadWhole(uploading, video, options);
};

const look = async (
  { http, request, steps, now }: Uploading,
  jobId: string,
  mediaId: string,
  { videoService }: VideoOptions,
) => {
  const ask = {
    service: videoService,
    nsid: 'app.bsky.video.getJobStatus',
    params: { jobId },
    subject: subjectOf(request),
  };
  const result = await xrpc(http, ask, steps.signal);
  steps.signal.throwIfAborted();
  return result.kind === 'ok' ? jobOf(result.data) : outcomeOfVideo(result, mediaId, now());
};

/** The job of an earlier attempt; null: there is none, or its file was in a write that failed and may be gone. */
const knownJob = ({ checkpoints }: PublishRequest, mediaId: string): string | null => {
  const at = checkpoints.findLastIndex(({ step, data }) => step === 'video' && textIn(data, 'mediaId') === mediaId);
  const crossed = checkpoints.findLastIndex(({ step }) => step === 'boundary');
  return at > crossed ? textIn(checkpoints[at]?.data as Json, 'jobId') : null;
};

export const uploadVideo = async (
  uploading: Uploading,
  video: PublishMedia,
  options: VideoOptions,
): Promise<UploadedMedia | Failed> => {
  const { request, steps } = uploading;
  const { mediaId, kind, width, height, altText } = video;
  const known = knownJob(request, mediaId);
  let job = known === null ? await start(uploading, video, options) : await look(uploading, known, mediaId, options);
  if ('kind' in job) return job;
  const { jobId } = job;
  if (jobId === null) return { kind: 'deferred', failure: mediaFailure(mediaId, 'the answer names no job') };
  if (known === null) await steps.checkpoint('video', { mediaId, jobId });
  const until = performance.now() + (options.videoWaitMs ?? defaultWaitMs);
  // The file counts, whatever the state is called: unknown states mean that it is not ready.
  while (job.blob === null) {
    if (job.state === 'JOB_STATE_FAILED') {
      // The next attempt uploads again: the job that failed stays failed.
      await steps.checkpoint('video', { mediaId, jobId: null });
      return job.isTheirs
        ? { kind: 'deferred', failure: mediaFailure(mediaId, job.said ?? job.state) }
        : { kind: 'failed', failure: videoRefused(mediaId, job.said) };
    }
    if (performance.now() > until) return { kind: 'deferred', failure: stillProcessing(mediaId) };
    await delay(options.videoPollMs ?? defaultPollMs, undefined, { signal: steps.signal });
    const next = await look(uploading, jobId, mediaId, options);
    if ('kind' in next) return next;
    job = next;
  }
  return { blob: job.blob, media: { kind, width, height, altText } };
};
