import { createHash } from 'node:crypto';
import type { Json, PublishMedia } from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import type { NetworkAnswer, NotOk } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { type KeepParts, subjectOf, type Uploader, type UploadItem, type UploadWork, upload } from '../kit/upload.ts';
import { membersOf, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { uploadedOf } from './find.ts';
import { isPublishId, posting } from './tables.ts';

/**
 * A video on its way: TikTok gives it an id and an address, and publishes it by itself when the last byte has come. So all
 * parts but the last are sent here, and the last one is the call of the boundary. An upload that is not ended publishes nothing.
 */

export type Video = {
  readonly id: string;
  /** Takes the file from everybody who knows it. */
  readonly to: string;
};

/**
 * "Media transfer guide": parts of 5 to 64 MB, the last of which has what is left over as well. TikTok was seen to refuse parts
 * of 10 MiB (post-for-me#327), so they are decimal; a file of one part says its own size.
 */
const partBytes = 10_000_000;

export interface PartsPlan {
  readonly part: number;
  readonly count: number;
  /** Where the last part begins. */
  readonly lastAt: number;
}

export const planOf = (bytes: number): PartsPlan => {
  const count = Math.max(1, Math.floor(bytes / partBytes));
  const part = count === 1 ? bytes : partBytes;
  return { part, count, lastAt: (count - 1) * part };
};

/** The address takes the file for an hour. */
const addressMs = 3_600_000;
/** TikTok has other bytes than we believe: an earlier call brought some. The status alone says which. */
export const outOfStep = 416;
/** Times that TikTok may say that it has another part of the file than we believe. */
const maxResyncs = 3;

const types: Readonly<Record<string, string>> = { 'video/quicktime': 'video/quicktime', 'video/webm': 'video/webm' };

/** The call that brings these bytes. @param end exclusive */
const partOf = async (video: PublishMedia, { to }: Video, start: number, end: number): Promise<Ask> => ({
  ...{ method: 'PUT', path: to, bytes: { path: await video.file(), start, end } },
  headers: {
    'content-type': types[video.contentType] ?? 'video/mp4',
    'content-range': `bytes ${start}-${end - 1}/${video.bytes}`,
  },
});

interface Sending extends UploadItem {
  readonly video: PublishMedia;
  readonly info: { readonly [name: string]: Json };
}

const uploads = (bound: Bound, { request, steps }: UploadWork): Uploader<Video, Sending> => {
  const { client, clock } = bound;
  const subject = subjectOf(request);
  const onSent = (bytes: number): void => steps.moved(bytes);
  /** Where the next part begins; an earlier worker may have sent more than it could record. */
  const nextAt = async (own: Video, { part, lastAt }: PartsPlan, keep: KeepParts<Video>): Promise<number | NotOk> => {
    const uploaded = await uploadedOf(bound, subject, own.id, steps.signal);
    if (typeof uploaded === 'number') return Math.min(Math.floor(uploaded / part) * part, lastAt);
    if (uploaded !== 'over') return uploaded;
    // The next attempt begins anew.
    await keep(own, 0, new Date(clock()).toISOString());
    return { kind: 'silent', reason: 'TikTok has ended the upload' };
  };
  return {
    secrets: ['to'],
    start: async ({ video, info }) => {
      const { part, count } = planOf(video.bytes);
      const sizes = { video_size: video.bytes, chunk_size: part, total_chunk_count: count };
      const json = { post_info: info, source_info: { source: 'FILE_UPLOAD', ...sizes } };
      const answer = await client.call(subject, posting('/post/publish/video/init/', json), steps.signal);
      if (answer.kind !== 'ok') return answer;
      const data = membersOf(answer.body.data) ?? {};
      const [id, to] = [textIn(data, 'publish_id') ?? '', textIn(data, 'upload_url') ?? ''];
      if (!isPublishId(id) || !URL.canParse(to)) return { kind: 'silent', reason: 'the answer has no upload' };
      return { kind: 'started', own: { id, to }, until: new Date(clock() + addressMs).toISOString() };
    },
    send: async ({ video }, own, sent, keep) => {
      const plan = planOf(video.bytes);
      const isResumed = request.checkpoints.length > 0 && plan.count > 1;
      let [at, resyncs]: [number | NotOk, number] = [isResumed ? await nextAt(own, plan, keep) : sent, 0];
      while (typeof at === 'number' && at < plan.lastAt) {
        const ask = { ...(await partOf(video, own, at, at + plan.part)), onSent, takes: [outOfStep] };
        const answer: NetworkAnswer = await client.call(subject, ask, steps.signal);
        if (answer.kind !== 'ok') return answer;
        if (answer.status === outOfStep) {
          resyncs += 1;
          if (resyncs > maxResyncs)
            return { kind: 'silent', reason: 'TikTok has other parts of the file than were sent' };
          at = await nextAt(own, plan, keep);
        } else {
          at += plan.part;
          await keep(own, at);
        }
      }
      return typeof at === 'number' ? null : at;
    },
  };
};

/** All of it is there but the last part. */
export const uploadVideo = (
  bound: Bound,
  work: UploadWork,
  video: PublishMedia,
  info: Sending['info'],
): Promise<Video | Failed> => {
  const sha256 = createHash('sha256')
    .update(JSON.stringify([video.sha256, info]))
    .digest('hex');
  const { mediaId, bytes } = video;
  return upload(work, { mediaId, sha256, bytes: planOf(bytes).lastAt, video, info }, uploads(bound, work));
};

export const lastPart = (video: PublishMedia, own: Video): Promise<Ask> =>
  partOf(video, own, planOf(video.bytes).lastAt, video.bytes);
