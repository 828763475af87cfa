import type { Checkpoint, PublishMedia, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import { beforeBoundary, failureOf } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { resumable, sendParts, startOfLast, type UploadSession, whereIs } from '../kit/resumable.ts';
import { isUploadFailed, upload } from '../kit/upload.ts';
import { type Members, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { hashOf } from './post.ts';

/**
 * A video on its way to YouTube. Its session makes one video with the last byte, and asked afterwards it names that video. So the
 * last part is the boundary call, and no other session begins while this one may still answer.
 */

/** `made`: id of the video that the session has made; null: none is known. */
type VideoSession = UploadSession & { readonly made: string | null };

export interface Ready {
  readonly kind: 'ready';
  readonly own: VideoSession;
  /** Byte with which the last part begins. */
  readonly from: number;
}

const beginOf = ({ contentType, bytes }: PublishMedia, resource: Members): Ask => ({
  ...{ method: 'POST', path: '{uploads}/videos', json: resource },
  query: { uploadType: 'resumable', part: 'snippet,status' },
  headers: { 'x-upload-content-type': contentType, 'x-upload-content-length': String(bytes) },
});

/** Says of a session that YouTube does not know it any more. */
const goneStep = 'session_gone';
const stepsOf = ({ checkpoints }: PublishRequest, name: string): readonly Checkpoint[] =>
  checkpoints.filter(({ step }) => step === name);

/** All of the file but its last part is there, or the session has made the video. */
export const uploaded = async (
  work: { readonly bound: Bound; readonly request: PublishRequest; readonly steps: PublishSteps },
  media: PublishMedia,
  resource: Members,
): Promise<Ready | { readonly kind: 'made'; readonly id: string } | Failed> => {
  const { bound, request, steps } = work;
  const name = `${media.mediaId} ${stepsOf(request, goneStep).length}`;
  const item = { ...media, name, sha256: hashOf(media.sha256, resource) };
  const by = resumable<VideoSession>(work, media, beginOf(media, resource), ({ session, partBytes }, body) => ({
    ...{ session, partBytes, made: textIn(body ?? {}, 'id') },
  }));
  const own = await upload(work, item, by);
  if (isUploadFailed(own)) return own;
  if (own.made !== null) return { kind: 'made', id: own.made };
  const from = startOfLast(media.bytes, own.partBytes);
  if (stepsOf(request, 'file').length === 0) return { kind: 'ready', own, from };
  // An earlier worker may have come as far as the last byte.
  const found = await whereIs(bound, request, own.session, steps.signal);
  steps.signal.throwIfAborted();
  if (found.kind === 'made') return { kind: 'made', id: textIn(found.body, 'id') ?? '' };
  if (found.kind === 'gone') {
    await steps.checkpoint(goneStep, {});
    return { kind: 'deferred', failure: failureOf('later', '410', 'the upload session has ended', media.mediaId) };
  }
  if (found.kind !== 'at') return beforeBoundary(found, bound.clock());
  const missing = await sendParts(work, media, own, found.offset, async () => undefined);
  if (missing !== null) return beforeBoundary(missing, bound.clock());
  return { kind: 'ready', own, from: Math.max(from, found.offset) };
};
