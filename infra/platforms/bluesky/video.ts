import { setTimeout as delay } from 'node:timers/promises';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { Json, PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { integerIn, type Members, membersOf, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { mediaFailure, outcomeOf, outcomeOfVideo, stillProcessing, uploadRefused, videoRefused } from './errors.ts';
import type { UploadedMedia } from './record.ts';
import { type BlobRef, blobOf } from './shapes.ts';
import type { Uploading } from './upload.ts';
import { type XrpcResult, xrpc } from './xrpc.ts';

/**
 * Videos go to a service of their own, which makes them ready and puts them into the repository (docs.bsky.app, "Video";
 * lexicons app.bsky.video.*). A job goes on without us: a later attempt asks for it by its id.
 */

/** How long one attempt waits for a job; the next goes on. */
const waitMs = 40_000;
const pollMs = 1_500;
/** Seconds for which a service takes our word that the account's server sent us. */
const authSeconds = 1_800;

export interface VideoOptions {
  readonly videoService: string;
  /** Milliseconds between two questions. Default 1,500. */
  readonly videoPollMs?: number;
  /** Milliseconds that one attempt waits. Default 40,000. */
  readonly videoWaitMs?: number;
}

interface Job {
  readonly jobId: string | null;
  readonly state: string;
  readonly blob: BlobRef | null;
  readonly said: string | null;
  /** A failure of theirs, which another upload may not have. */
  readonly isTheirs: boolean;
}

/** Codes of a failed job that say nothing of the file. */
const theirs = new Set(['pds_upload_failure', 'generic_failure']);

/** The service has answered with the status in a member and without one: both are taken. */
const jobOf = (data: Members): Job => {
  const status = membersOf(data.jobStatus) ?? data;
  const isTheirs = theirs.has(textIn(status, 'failureCode') ?? textIn(status, 'error') ?? '');
  const said = textIn(status, 'message') ?? textIn(status, 'error') ?? textIn(status, 'failureCode');
  return {
    jobId: textIn(status, 'jobId'),
    state: textIn(status, 'state') ?? '',
    blob: blobOf(status.blob),
    said,
    isTheirs,
  };
};

const subjectOf = ({ account, targetId }: PublishRequest): NetworkCall['subject'] => ({
  accountId: account.id,
  targetId,
});

/** A token of the account's own server, for one method of one service. */
const serviceToken = async (
  { http, secret, request, steps, now }: Uploading,
  audience: string,
  method: string,
): Promise<{ readonly token: string } | Failed> => {
  const exp = String(Math.floor(now() / 1_000) + authSeconds);
  const result = await xrpc(
    http,
    {
      ...{ service: secret.service, nsid: 'com.atproto.server.getServiceAuth', token: secret.token },
      params: { aud: audience, lxm: method, exp },
      ...{ subject: subjectOf(request), isSecret: true },
    },
    steps.signal,
  );
  if (result.kind !== 'ok') return outcomeOf(result, false, now());
  const token = textIn(result.data, 'token');
  return token === null ? { kind: 'deferred', failure: mediaFailure(null, 'the answer has no token') } : { token };
};

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
  { videoService }: VideoOptions,
): Promise<Failed | null> => {
  const { http, request, steps, now } = uploading;
  const nsid = 'app.bsky.video.getUploadLimits';
  const auth = await serviceToken(uploading, `did:web:${new URL(videoService).hostname}`, nsid);
  steps.signal.throwIfAborted();
  if ('kind' in auth) return null;
  const ask = { service: videoService, nsid, token: auth.token, subject: subjectOf(request) };
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

const start = async (
  uploading: Uploading,
  video: PublishMedia,
  { videoService }: VideoOptions,
): Promise<Job | Failed> => {
  const { http, secret, request, steps, now } = uploading;
  const refused = await refusedBefore(uploading, video, { videoService });
  if (refused !== null) return refused;
  const { hostname } = new URL(secret.service);
  const auth = await serviceToken(uploading, `did:web:${hostname}`, 'com.atproto.repo.uploadBlob');
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
  const until = performance.now() + (options.videoWaitMs ?? waitMs);
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
    await delay(options.videoPollMs ?? pollMs, undefined, { signal: steps.signal });
    const next = await look(uploading, jobId, mediaId, options);
    if ('kind' in next) return next;
    job = next;
  }
  return { blob: job.blob, media: { kind, width, height, altText } };
};
