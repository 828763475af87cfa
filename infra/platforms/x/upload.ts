import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { Json, PublishMedia, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import { membersOf, numberIn, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import type { XApi } from './api.ts';
import { notReached } from './errors.ts';
import { beforeCreate, type NotOk } from './outcomes.ts';

/** A file on its way to X, as the checkpoint `upload` keeps it. An upload publishes nothing. */

export type UploadState =
  /** Segments before `next` are with X. */
  | 'appending'
  /** All are, and the upload may be finalized. */
  | 'appended'
  | 'processing'
  /** It may be part of a post. */
  | 'ready'
  /** X could not process it: the next attempt uploads it again. */
  | 'failed';

export interface Upload {
  /** Of the asset. */
  readonly mediaId: string;
  readonly sha256: string;
  /** X's. */
  readonly id: string;
  /** ISO 8601, until which X keeps it. */
  readonly until: string;
  readonly segmentBytes: number;
  readonly next: number;
  readonly state: UploadState;
}

export interface Uploading {
  readonly api: XApi;
  readonly request: PublishRequest;
  readonly steps: PublishSteps;
  readonly now: () => number;
  readonly segmentBytes: number;
  readonly processingMs: number;
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

export const isFailed = (result: Upload | Failed): result is Failed => 'kind' in result;

export const subjectOf = ({ account, targetId }: PublishRequest): NetworkCall['subject'] => ({
  accountId: account.id,
  targetId,
});

export const keep = async ({ steps }: Uploading, upload: Upload): Promise<Upload> => {
  await steps.checkpoint('upload', { ...upload });
  return upload;
};

export const notOk = ({ now }: Uploading, { mediaId }: PublishMedia, result: NotOk): Failed => {
  const failed = beforeCreate(result, now());
  const { category } = failed.failure;
  const isOfFile = category === 'invalid_content' || category === 'media' || failed.kind === 'deferred';
  return isOfFile ? { ...failed, failure: { ...failed.failure, mediaId } } : failed;
};

export const incomplete = ({ mediaId }: PublishMedia, said: string): Failed => ({
  kind: 'deferred',
  failure: { ...notReached(said), mediaId },
});

/** What X answered about an upload; null: the answer lacks its id. */
export const startedOf = (
  { now }: Uploading,
  { mediaId, sha256 }: PublishMedia,
  data: Json | undefined,
  rest: Pick<Upload, 'segmentBytes' | 'next' | 'state'>,
): Upload | null => {
  const id = textIn(data, 'id');
  if (id === null || !/^\d{1,19}$/.test(id)) return null;
  return { mediaId, sha256, id, until: untilOf(now(), data) ?? new Date(now() + shortestMs).toISOString(), ...rest };
};

const shortestMs = 3_600_000;

export const untilOf = (now: number, data: Json | undefined): string | null => {
  const seconds = numberIn(data, 'expires_after_secs');
  return seconds === null || seconds < 0 || seconds > 1e9 ? null : new Date(now + seconds * 1_000).toISOString();
};

/** So much time must be left for what follows. */
const spareMs = 600_000;
const states: readonly string[] = ['appending', 'appended', 'processing', 'ready'] satisfies UploadState[];

/** The upload of an earlier try that can be gone on with. */
export const earlier = ({ request, now }: Uploading, media: PublishMedia): Upload | null => {
  const data = request.checkpoints.findLast(
    (one) => one.step === 'upload' && textIn(one.data, 'mediaId') === media.mediaId,
  )?.data;
  const kept = membersOf(data) as Upload | null;
  if (kept === null || kept.sha256 !== media.sha256 || !states.includes(kept.state)) return null;
  return Date.parse(kept.until) - now() > spareMs ? kept : null;
};
