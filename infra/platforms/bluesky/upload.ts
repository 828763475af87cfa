import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import type { PublishMedia, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import type { Failed } from '../shared/outcomes.ts';
import { mediaFailure, outcomeOf } from './errors.ts';
import type { UploadedMedia } from './record.ts';
import type { SessionSecret } from './session.ts';
import { blobOf } from './shapes.ts';
import { xrpc } from './xrpc.ts';

/**
 * Files go up before each write of the record: the server drops one that no record names after a while, and the same
 * bytes always get the same id, so a second upload changes nothing.
 */

export interface Uploading {
  readonly http: NetworkHttp;
  readonly secret: SessionSecret;
  readonly request: PublishRequest;
  readonly steps: PublishSteps;
  readonly now: () => number;
}

export const isFailed = (result: UploadedMedia | Failed): result is Failed => 'kind' in result;

export const uploadFile = async (
  { http, secret, request, steps, now }: Uploading,
  media: PublishMedia,
): Promise<UploadedMedia | Failed> => {
  const path = await media.file();
  const result = await xrpc(
    http,
    {
      service: secret.service,
      nsid: 'com.atproto.repo.uploadBlob',
      input: { type: media.contentType, body: [{ path, start: 0, end: media.bytes }] },
      token: secret.token,
      subject: { accountId: request.account.id, targetId: request.targetId },
      onSent: (bytes) => steps.moved(bytes),
    },
    steps.signal,
  );
  steps.signal.throwIfAborted();
  if (result.kind !== 'ok') {
    const failed = outcomeOf(result, false, now());
    return { ...failed, failure: { ...failed.failure, mediaId: media.mediaId } };
  }
  const blob = blobOf(result.data.blob);
  if (blob === null) return { kind: 'deferred', failure: mediaFailure(media.mediaId, 'the answer has no blob') };
  const { kind, width, height, altText } = media;
  return { blob, media: { kind, width, height, altText } };
};
